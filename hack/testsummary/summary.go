package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is a line of "go test -json": see "go doc test2json".
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build-output event
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// pkg is what is known of a package whose tests have started and not ended.
type pkg struct {
	streamed        bool
	cached          bool
	passed, skipped int
	failed          int
	// output holds what each running test has printed, and under "" what the
	// package itself has.
	output map[string][]string
}

// summary collects events and prints them to out.
type summary struct {
	out    io.Writer
	stream string

	running map[string]*pkg
	builds  map[string][]string // the compiler's output by import path

	passed, failed, skipped int
	withoutTests            int
	failures                []string
	skips                   map[string][]string // the tests by package and reason
	cases                   *cases              // nil if none are counted
}

func newSummary(out io.Writer, stream string) *summary {
	return &summary{out: out, stream: stream, running: map[string]*pkg{}, builds: map[string][]string{}, skips: map[string][]string{}}
}

// line takes one line of the input and says whether it printed something.
func (s *summary) line(line []byte) bool {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		fmt.Fprint(s.out, string(line)) // not an event: go's own words
		return true
	}
	switch {
	case e.Action == "build-output":
		s.builds[e.ImportPath] = append(s.builds[e.ImportPath], e.Output)
		return false
	case e.Action == "build-fail" || e.Package == "":
		return false
	}

	p := s.running[e.Package]
	if p == nil {
		p = &pkg{output: map[string][]string{}}
		p.streamed = s.stream != "" && strings.Contains(e.Package, s.stream)
		s.running[e.Package] = p
	}
	switch {
	case e.Action == "output":
		return s.output(p, e)
	case e.Test != "":
		return s.testEnd(p, e)
	default:
		return s.packageEnd(p, e)
	}
}

func (s *summary) output(p *pkg, e event) bool {
	if e.Test == "" && strings.Contains(e.Output, "\t(cached)") {
		p.cached = true
	}
	if e.Test == "" && isVerdict(e.Output) {
		return false // a line of ours says it
	}
	p.output[e.Test] = append(p.output[e.Test], e.Output)
	if p.streamed {
		fmt.Fprint(s.out, e.Output)
	}
	return p.streamed
}

func (s *summary) testEnd(p *pkg, e event) bool {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "pass":
		p.passed++
		s.passed++
		s.cases.passed(e.Test)
	case "skip":
		p.skipped++
		s.skipped++
		why := e.Package + reason(p.output[e.Test])
		s.skips[why] = append(s.skips[why], e.Test)
	case "fail":
		p.failed++
		s.failed++
		s.failures = append(s.failures, name)
		s.show(p, e.Test)
	default: // run, pause, cont, bench
		return false
	}
	delete(p.output, e.Test)
	return e.Action == "fail"
}

func (s *summary) packageEnd(p *pkg, e event) bool {
	if e.Action != "pass" && e.Action != "skip" && e.Action != "fail" {
		return false // start
	}
	delete(s.running, e.Package)
	switch {
	case e.Action == "fail":
		s.packageFailed(p, e)
	case p.passed+p.skipped == 0:
		s.withoutTests++
		return false
	default:
		took := fmt.Sprintf("%.1fs", e.Elapsed)
		if p.cached {
			took = "cached"
		}
		fmt.Fprintf(s.out, "ok    %s (%s): %s\n", e.Package, took, counts(p.passed, 0, p.skipped))
	}
	return true
}

func (s *summary) packageFailed(p *pkg, e event) {
	for _, line := range s.builds[e.FailedBuild] {
		fmt.Fprint(s.out, line)
	}
	// The package's own words, and what tests had printed when it ended under
	// them: a panic, a time-out.
	var ended []string
	for _, test := range slices.Sorted(maps.Keys(p.output)) {
		s.show(p, test)
		if test != "" {
			ended = append(ended, test)
		}
	}
	what := counts(p.passed, p.failed, p.skipped)
	switch {
	case e.FailedBuild != "":
		what = "did not build"
	case len(ended) > 0:
		what += "; ended in the middle of " + strings.Join(ended, ", ")
	case p.failed == 0:
		what = "failed outside of its tests; " + what
	}
	if p.failed == 0 {
		s.failed++
		s.failures = append(s.failures, e.Package+" ("+what+")")
	}
	fmt.Fprintf(s.out, "FAIL  %s (%.1fs): %s\n", e.Package, e.Elapsed, what)
}

// show prints what a test, or with "" the package, has printed, once.
func (s *summary) show(p *pkg, test string) {
	if !p.streamed {
		fmt.Fprint(s.out, strings.Join(p.output[test], ""))
	}
}

// doing says what is going on, for the time when nothing ends.
func (s *summary) doing() string {
	if len(s.running) == 0 {
		return "compiling"
	}
	return counts(s.passed, s.failed, s.skipped) + " so far; running or compiling " +
		strings.Join(slices.Sorted(maps.Keys(s.running)), ", ")
}

// finish prints the totals and says whether everything passed.
func (s *summary) finish() bool {
	for _, name := range slices.Sorted(maps.Keys(s.running)) {
		s.failed++
		s.failures = append(s.failures, name+" (did not end)")
	}
	fmt.Fprintln(s.out)
	var skips []string
	for _, why := range slices.Sorted(maps.Keys(s.skips)) {
		tests := s.skips[why]
		if n := len(tests); n > 3 {
			tests = append(tests[:2:2], fmt.Sprintf("and %d more", n-2))
		}
		skips = append(skips, why+" ("+strings.Join(tests, ", ")+")")
	}
	list(s.out, "Skipped:", skips)
	list(s.out, "Failed:", s.failures)
	if s.withoutTests > 0 {
		fmt.Fprintf(s.out, "Packages without a test that was run: %d\n", s.withoutTests)
	}
	covered := s.cases.report(s.out)
	fmt.Fprintln(s.out, counts(s.passed, s.failed, s.skipped))
	return s.failed == 0 && s.passed > 0 && covered
}

func list(out io.Writer, title string, items []string) {
	if len(items) == 0 {
		return
	}
	fmt.Fprintln(out, title)
	for _, item := range items {
		fmt.Fprintln(out, "  "+item)
	}
}

func counts(passed, failed, skipped int) string {
	text := fmt.Sprintf("%d passed, %d failed", passed, failed)
	if skipped > 0 {
		text += fmt.Sprintf(", %d skipped", skipped)
	}
	return text
}

// isVerdict is for the lines with which go test ends a package.
func isVerdict(line string) bool {
	switch strings.TrimSpace(line) {
	case "PASS", "FAIL":
		return true
	}
	return strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t")
}

// reason is what a skipped test gave as the reason, from what it printed.
func reason(output []string) string {
	for _, line := range slices.Backward(output) {
		text := strings.TrimSpace(line)
		if text == "" || strings.HasPrefix(text, "--- ") || strings.HasPrefix(text, "=== ") {
			continue
		}
		if _, after, ok := strings.Cut(text, ".go:"); ok { // file.go:12: reason
			if _, words, ok := strings.Cut(after, ": "); ok {
				text = words
			}
		}
		return ": " + text
	}
	return ""
}
