package rollout_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestUnreadableOrders: what cannot be read is told of once, and stands in the message for
// as long as it is there.
func TestUnreadableOrders(t *testing.T) {
	tests := map[string]struct {
		annotation, text, says string
	}{
		"a command that is no JSON": {v1alpha1.CommandAnnotation, "retry", "must be JSON such as"},
		"a command without an id":   {v1alpha1.CommandAnnotation, `{"verb":"promote","attempt":1}`, "with an id of 1 to 253 characters"},
		"an abort in words":         {v1alpha1.AbortAnnotation, "yes", "must be the number of the attempt to abort"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := at20(t)
			if w.times(v1alpha1.ReasonCommandIgnored) != 0 {
				t.Fatalf("told before: %v", w.journal.told)
			}
			w.object.annotations[tc.annotation] = tc.text
			w.settle()
			w.runFor(2 * time.Minute)
			w.restart()
			w.until(time.Hour, "it goes on", w.atShare("50"))
			if got := w.times(v1alpha1.ReasonCommandIgnored); got != 1 || !strings.Contains(w.message(), tc.says) {
				t.Errorf("told %d times, want once; the message is %q, want %q in it", got, w.message(), tc.says)
			}
			if w.status().Command != nil {
				t.Errorf("status.command is %s", encoded(w.status().Command))
			}
			delete(w.object.annotations, tc.annotation)
			w.settle()
			if strings.Contains(w.message(), tc.says) {
				t.Errorf("the message still is %q", w.message())
			}
			w.object.annotations[tc.annotation] = tc.text
			w.settle()
			if got := w.times(v1alpha1.ReasonCommandIgnored); got != 2 {
				t.Errorf("the second time it is told %d times, want twice in all", got)
			}
		})
	}
}

// TestUnreadableOrdersAreToldOnceBesideALongMessage: by the message it is known what was
// told, so that no other text may push it out.
func TestUnreadableOrdersAreToldOnceBesideALongMessage(t *testing.T) {
	w := at20(t)
	w.owner = strings.Repeat("long", 400)
	w.object.annotations[v1alpha1.CommandAnnotation] = "retry"
	w.object.annotations[v1alpha1.AbortAnnotation] = "now"
	w.settle()
	w.owner += "er"
	w.settle()
	message := w.message()
	if got := w.times(v1alpha1.ReasonCommandIgnored); got != 1 || !strings.Contains(message, "must be JSON") || !strings.Contains(message, "must be the number") || len(message) > 1024 {
		t.Errorf("told %d times, want once; the message has %d bytes: %q", got, len(message), message)
	}
}

// TestAbortForAnotherAttempt: it does nothing, and says so.
func TestAbortForAnotherAttempt(t *testing.T) {
	t.Run("one that has not begun", func(t *testing.T) {
		w := at20(t)
		w.abort(2)
		w.settle()
		w.runFor(2 * time.Minute)
		w.expect(v1alpha1.OutcomeInProgress, v1alpha1.ReasonSoaking, "80/20")
		if got := w.times(v1alpha1.ReasonCommandIgnored); got != 1 || !strings.Contains(w.message(), "is for attempt 2, and this is attempt 1: it aborts nothing now, and attempt 2 as soon as it begins") {
			t.Errorf("told %d times, want once; the message is %q", got, w.message())
		}
		w.revise("v3")
		w.settle()
		w.expect(v1alpha1.OutcomeRolledBack, v1alpha1.ReasonAborted, "100/0")
	})
	t.Run("one that another revision has ended", func(t *testing.T) {
		w := at20(t)
		w.revise("v3")
		w.settle()
		w.abort(1)
		w.until(time.Hour, "attempt 2 soaks at 20 percent", w.atShare("20"))
		if got := w.times(v1alpha1.ReasonCommandIgnored); got != 1 || !strings.Contains(w.message(), "is for attempt 1, and this is attempt 2: it aborts nothing") {
			t.Errorf("told %d times, want once; the message is %q", got, w.message())
		}
	})
	t.Run("one that it has aborted", func(t *testing.T) {
		w := at20(t)
		w.abort(1)
		w.settle()
		w.say(v1alpha1.VerbRetry)
		w.until(time.Hour, "attempt 2 soaks at 20 percent", w.atShare("20"))
		if w.told(v1alpha1.ReasonCommandIgnored) || strings.Contains(w.message(), v1alpha1.AbortAnnotation) {
			t.Errorf("told %v, and the message is %q", w.journal.told, w.message())
		}
	})
}

// TestMisspeltVerb: the answer is about the verb, whatever state the rollout is in and
// whatever else is wrong with the command.
func TestMisspeltVerb(t *testing.T) {
	w := at20(t)
	w.abort(1)
	w.settle()
	for _, attempt := range []int64{1, 7} {
		w.command(v1alpha1.Command{ID: fmt.Sprint(attempt), Verb: "retyr", Attempt: attempt})
		w.settle()
		if c := w.status().Command; c.Accepted || !strings.HasPrefix(c.Message, "its verb must be approve, skip,") {
			t.Errorf("for attempt %d the answer is %s", attempt, encoded(c))
		}
	}
}
