package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weightedrollout/weightedrollout/internal/diagnose"
)

// drawDiagnosis shows what was found.
func drawDiagnosis(s *screen, d *Diagnosis) {
	title := fmt.Sprintf("WeightedRollout %s/%s", d.Namespace, d.Name)
	if d.Revision != "" {
		title += fmt.Sprintf(", revision %q, attempt %d", d.Revision, d.Attempt)
	}
	s.line(bold, title)
	s.prose(0, "%s", sourceText(d.Source, d.At))

	s.head(fmt.Sprintf("%s: %s", verdictText(d.Situation.Verdict), d.Situation.Phase))
	says := d.Situation.Says
	if d.Situation.Reason != "" {
		says = d.Situation.Reason + ": " + says
	}
	s.indented("", "%s", capital(says))
	if d.Situation.Do != "" {
		s.indented("Do: ", "%s", d.Situation.Do)
	}
	drawNumbers(s, d.Situation.Numbers)
	for _, f := range d.Findings {
		drawFinding(s, f)
	}
	s.gap()
	if d.Problems == 0 {
		s.line(green, "No problem was found.")
		return
	}
	s.line(red, fmt.Sprintf("%s found.", plural(d.Problems, "problem was", "problems were")))
}

func drawFinding(s *screen, f diagnose.Finding) {
	s.head(fmt.Sprintf("%s: %s", verdictText(f.Verdict), f.Question))
	s.indented("", "%s", capital(f.Says))
	drawNumbers(s, f.Numbers)
	for _, r := range f.Remedies {
		s.indented("Cause: ", "%s", r.Cause)
		s.indented("Cure:  ", "%s", r.Cure)
	}
}

func verdictText(v diagnose.Verdict) string {
	if v == diagnose.CannotTell {
		return "Cannot tell"
	}
	return string(v)
}

// sourceText says where the numbers come from, and how old they are.
func sourceText(source Source, now time.Time) string {
	switch {
	case source.Live:
		return "The numbers are the controller's live evidence."
	case source.At == nil:
		return "The numbers are those of the status."
	}
	age := max(now.Sub(*source.At), 0).Round(time.Second)
	return fmt.Sprintf("The numbers are those of the status, which was written %s ago.", age)
}

// drawNumbers writes names and values in two columns.
func drawNumbers(s *screen, numbers []diagnose.Number) {
	width := 0
	for _, n := range numbers {
		width = max(width, cells(clean(n.What)))
	}
	for _, n := range numbers {
		s.indented(pad(clean(n.What), width, false)+"  ", "%s", n.Value)
	}
}

// indented writes a text two columns in, and its later lines below its beginning.
func (s *screen) indented(label, format string, args ...any) {
	const margin = 2
	left := margin + cells(label)
	for i, l := range wrap(clean(fmt.Sprintf(format, args...)), s.width-left, 0) {
		if i > 0 {
			label = strings.Repeat(" ", left-margin)
		}
		s.raw(strings.Repeat(" ", margin) + label + l)
	}
}

// capital begins a sentence.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return strings.ToUpper(string(first)) + text[size:]
}
