package played

import (
	"testing"
	"time"
)

const (
	// patience is how long something that must happen may take. A busy machine is no
	// failure, so it is far longer than needed.
	patience = 3 * time.Minute
	// pollEvery is the time between two looks.
	pollEvery = 50 * time.Millisecond
)

// eventually waits until the condition holds. It says what was awaited, and what
// was there instead, if that takes too long.
func eventually(t *testing.T, what string, condition func() (ok bool, instead string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, instead := condition()
		switch {
		case ok:
			return
		case t.Context().Err() != nil:
			t.Fatalf("%s: the test was ended; there is %s", what, instead)
		case time.Now().After(deadline):
			t.Fatalf("%s: did not happen within %s; there is %s", what, patience, instead)
		}
		time.Sleep(pollEvery)
	}
}
