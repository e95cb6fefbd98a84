package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
)

// maxProblems is how many problems an error lists, and maxListed how many objects.
const (
	maxProblems = 50
	maxListed   = 5
)

// InvalidError lists what the API server would refuse an object for.
type InvalidError struct {
	// Name of the object; it may be empty.
	Name string
	// Problems holds a sentence each, as "field: what is wrong", at least one. A long
	// one is clipped, and of more than 50 the last says how many there are beside.
	Problems []string
	// Incomplete says that the object's shape is so wrong that some rules were not
	// checked, which can find further problems once the others are corrected.
	Incomplete bool
}

// IncompleteNote says what Incomplete means, in the API server's own words.
const IncompleteNote = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

func newInvalid(d document, problems []string) *InvalidError {
	beside := len(problems) - maxProblems
	problems = slices.Clone(problems[:min(len(problems), maxProblems)])
	for i, p := range problems {
		problems[i] = yamltext.Clip(p)
	}
	if beside > 0 {
		problems = append(problems, fmt.Sprintf("… and %d more", beside))
	}
	return &InvalidError{Name: yamltext.Clip(d.name()), Problems: problems}
}

// Error lists the problems, one per line where there are several, and says in a last line
// if they may not be all.
func (e *InvalidError) Error() string {
	object := kind
	if e.Name != "" {
		object += fmt.Sprintf(" %q", e.Name)
	}
	text := object + " is invalid:\n* " + strings.Join(e.Problems, "\n* ")
	if len(e.Problems) == 1 {
		text = object + " is invalid: " + e.Problems[0]
	}
	if e.Incomplete {
		text += "\nnote: " + IncompleteNote
	}
	return text
}

// SeveralError says that one of several objects has to be chosen by name.
type SeveralError struct {
	// Names are the quoted names of the objects, each once and in order.
	Names []string
}

// Error lists the names, the first few of many.
func (e *SeveralError) Error() string {
	return fmt.Sprintf("the manifest holds several WeightedRollouts, %s: choose one by name", listed(e.Names))
}

// listed joins names, the first few of many.
func listed(names []string) string {
	text := strings.Join(names[:min(len(names), maxListed)], ", ")
	if beside := len(names) - maxListed; beside > 0 {
		text += fmt.Sprintf(", %d more", beside)
	}
	return text
}
