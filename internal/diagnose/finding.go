package diagnose

import (
	"fmt"
	"math"
	"strconv"
)

// Verdict is the answer to a question.
type Verdict string

const (
	// OK says that nothing is wrong.
	OK Verdict = "OK"
	// Problem says that something is.
	Problem Verdict = "Problem"
	// CannotTell says that there is too little to go by.
	CannotTell Verdict = "CannotTell"
)

// Finding is what became of a question.
type Finding struct {
	// Question that was asked.
	Question string `json:"question"`
	// Verdict is the answer, and Says puts it in words.
	Verdict Verdict `json:"verdict"`
	Says    string  `json:"says"`
	// Numbers are what was looked at.
	Numbers []Number `json:"numbers,omitempty"`
	// Remedies are the causes that come into question, the likeliest first.
	Remedies []Remedy `json:"remedies,omitempty"`
}

// Number is something that was looked at.
type Number struct {
	What  string `json:"what"`
	Value string `json:"value"`
}

// Remedy is a cause of a problem, and its cure.
type Remedy struct {
	Cause string `json:"cause"`
	Cure  string `json:"cure"`
}

func (f *Finding) number(what, format string, args ...any) {
	f.Numbers = append(f.Numbers, Number{what, fmt.Sprintf(format, args...)})
}

func (f *Finding) remedy(cause, cure string) {
	f.Remedies = append(f.Remedies, Remedy{cause, cure})
}

// concludes ends a finding.
func (f *Finding) concludes(v Verdict, format string, args ...any) Finding {
	f.Verdict, f.Says = v, fmt.Sprintf(format, args...)
	return *f
}

// short writes a number with three significant digits, and whole from 100 on.
func short(x float64) string {
	if math.Abs(x) >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// many writes a number with its noun.
func many(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}
