package diagnose

import (
	"regexp"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Ways in which the controller's events tell of a change of the share. A group that is
// missing stands for 0 percent, and a from that is missing for the share before.
var (
	fromTo     = regexp.MustCompile(`share goes from ([0-9.]+) to ([0-9.]+) percent`)
	goesTo     = regexp.MustCompile(`share goes to ([0-9.]+) percent`)
	rolledBack = regexp.MustCompile(`rolled back from ([0-9.]+) percent`)
	lowered    = regexp.MustCompile(`were changed.* from ([0-9.]+) percent for the canary to ([0-9.]+):`)
)

// ChangeIn reads the change of the canary's share that an event of the controller tells
// of. Before is the share before it. It is false of an event about something else.
func ChangeIn(at time.Time, reason, message string, before weights.Share) (Change, bool) {
	c := Change{At: at, From: before, Why: reason}
	var texts [2]string
	switch reason {
	case v1alpha1.ReasonAttemptStarted:
		c.Started = true
		return c, true
	case v1alpha1.ReasonRolledBack:
		m := rolledBack.FindStringSubmatch(message)
		if m == nil {
			return Change{}, false
		}
		texts = [2]string{m[1], "0"}
	case v1alpha1.ReasonDrift:
		m := lowered.FindStringSubmatch(message)
		if m == nil {
			return Change{}, false
		}
		texts = [2]string{m[1], m[2]}
	default:
		if m := fromTo.FindStringSubmatch(message); m != nil {
			texts = [2]string{m[1], m[2]}
		} else if m := goesTo.FindStringSubmatch(message); m != nil {
			texts = [2]string{string(before.Percent()), m[1]}
		} else {
			return Change{}, false
		}
	}
	from, errFrom := weights.ShareFrom(v1alpha1.Percent(texts[0]))
	to, errTo := weights.ShareFrom(v1alpha1.Percent(texts[1]))
	c.From, c.To = from, to
	return c, errFrom == nil && errTo == nil
}
