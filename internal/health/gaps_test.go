package health

import (
	"testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// gaps are windows of which only so many in a row, of so many, have traffic.
func gaps(from, to, busy, of int, change func(*Window)) []Window {
	var ws []Window
	for i := from; i <= to; i++ {
		if (i-from)%of < busy {
			ws = append(ws, windows(i, i, change)...)
		} else {
			ws = append(ws, windows(i, i, canary(0, 0, 0))...)
		}
	}
	return ws
}

// A canary that fails whenever it is asked is unhealthy, however seldom that is:
// silence does not end a breach.
func TestGapsDoNotHideABreach(t *testing.T) {
	c := errorsOnly()
	for name, ws := range map[string][]Window{
		"a batch every 75 seconds":     gaps(5, 60, 4, 5, canary(500, 500, 0)),
		"a batch every 90 seconds":     gaps(5, 60, 3, 6, canary(500, 500, 0)),
		"one request in a while":       gaps(5, 230, 4, 7, canary(1, 1, 0)),
		"every other one, in a while":  gaps(5, 230, 4, 7, canary(2, 1, 0)),
		"slow whenever it is asked":    gaps(5, 60, 3, 6, canary(500, 0, 500)),
		"a batch, and then silence on": concat(windows(5, 12, canary(500, 500, 0)), windows(13, 13, canary(0, 0, 0)), windows(14, 16, canary(500, 500, 0))),
	} {
		t.Run(name, func(t *testing.T) {
			if name == "slow whenever it is asked" {
				c = both()
				c.Checks = nil
			}
			for n := 1; n <= len(ws); n++ {
				if Evaluate(input(c, ws[:n])).State == unhealthy {
					return
				}
			}
			t.Errorf("never unhealthy: %+v", Evaluate(input(c, ws)))
		})
	}
	// Good traffic ends it.
	ws := concat(windows(5, 6, canary(500, 500, 0)), windows(7, 10, canary(0, 0, 0)), windows(11, 11, canary(500, 0, 0)), windows(12, 13, canary(500, 500, 0)))
	if v := Evaluate(input(c, ws)); v.State != degraded || v.Reason != v1alpha1.ReasonBreach {
		t.Errorf("a breach that good traffic has ended goes on: %+v", v)
	}
	// Silence after a breach is neither a failure nor a pass.
	ws = concat(windows(5, 7, canary(500, 500, 0)), windows(8, 100, canary(0, 0, 0)))
	if v := Evaluate(input(c, ws)); v.State == unhealthy || v.RampReady || v.StageReady {
		t.Errorf("silence: %+v", v)
	}
}

// Failures that are too few to prove anything are named while more requests are
// awaited.
func TestFailuresAreNamedWhileRequestsAreAwaited(t *testing.T) {
	v := Evaluate(input(errorsOnly(), windows(5, 8, canary(50, 4, 0))))
	expect{nothing, v1alpha1.ReasonInsufficientRequests, CheckRequests, true, false, "50 of 100 requests; 4 of 50 requests failed since the share was confirmed (8%), above the limit of 1%, but not yet beyond doubt"}.compare(t, v)
}
