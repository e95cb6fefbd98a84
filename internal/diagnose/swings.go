package diagnose

import (
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// teeth is the number of turns from which on a weight swings. A rollout that rises, is
// scaled back once and rises again has two.
const teeth = 3

// mostChanges is how many changes are listed.
const mostChanges = 8

// Swings asks whether the canary's weight goes up and down like the teeth of a saw.
func Swings(in Input) Finding {
	f := &Finding{Question: "Does the weight of the canary keep its direction?"}
	if len(in.Changes) == 0 {
		return f.concludes(CannotTell, "no change of the share is on record: the API server keeps events for an hour, as a rule")
	}
	for _, c := range in.Changes[max(0, len(in.Changes)-mostChanges):] {
		at := c.At.UTC().Format("15:04:05")
		if c.Started {
			f.number(at, "an attempt begins")
			continue
		}
		f.number(at, "%s to %s (%s)", c.From, c.To, c.Why)
	}
	if c := in.fellCold(); c != nil {
		// That it fell is told elsewhere. Why it did, the weights do not say.
		f.remedy("if it does well once it is warm, its first traffic was too much for it: compilers, caches and connection pools were empty",
			"lower ramp.warmup.initialPercent or raise ramp.warmup.soak; give the canary more replicas")
		return f.concludes(CannotTell, "the canary fell with its first traffic, %s (%s): a cold one does so, and so does a bad one", c.From, c.Why)
	}
	moves, turns, why := turnsOf(in.lastAttempt())
	if turns < teeth {
		return f.concludes(OK, "in the last attempt the share has moved %s, and turned %s", many(moves, "time"), many(turns, "time"))
	}
	if why[v1alpha1.ReasonDrift] {
		f.remedy("another writer changes the weights, and the controller sets them back",
			"let that writer leave backendRefs[].weight alone")
	}
	if why[v1alpha1.ReasonDegraded] {
		f.remedy("the verdict goes to and fro, because a target lies within what is normal for the canary: less load makes it better, and more makes it worse",
			"raise health.errorRate.targetPercent or health.latency.target above that; smooth more (a smaller health.latency.smoothing, a longer health.window); widen the dead band (a smaller health.degradedBelow)")
		f.remedy("each error takes too much off the score, so that recovery is a long climb",
			"lower health.errorRate.penalty or health.latency.penalty")
	}
	if why[v1alpha1.ReasonCanaryNotReady] || why[v1alpha1.ReasonPodsReplaced] {
		f.remedy("the canary's pods come and go", "look at their restarts, probes and evictions")
	}
	if why[v1alpha1.ReasonNotResolved] {
		f.remedy("a gateway cannot resolve a backend from time to time", "look at the ReferenceGrants and Services, and at who changes them")
	}
	if why[v1alpha1.ReasonBreakerOpen] {
		f.remedy("the canary breaks again whenever it is tried", "repair it; a lower onUnhealthy.maxTrips ends the attempt sooner")
	}
	return f.concludes(Problem, "in the last attempt the share has changed its direction %d times: it swings", turns)
}

// turnsOf counts how often the share moved and turned, and collects the reasons of its
// falls.
func turnsOf(changes []Change) (moves, turns int64, why map[string]bool) {
	why = map[string]bool{}
	last := 0
	for _, c := range changes {
		direction := 0
		switch {
		case c.To > c.From:
			direction = 1
		case c.To < c.From:
			direction = -1
			why[c.Why] = true
		}
		if direction == 0 {
			continue
		}
		moves++
		if direction == -last {
			turns++
		}
		last = direction
	}
	return moves, turns, why
}

// lastAttempt returns what has changed since the last attempt began.
func (in Input) lastAttempt() []Change {
	start := 0
	for i, c := range in.Changes {
		if c.Started {
			start = i + 1
		}
	}
	return in.Changes[start:]
}

// fellCold returns the fall that ended the first traffic of the last attempt, if it did.
func (in Input) fellCold() *Change {
	attempt := slices.DeleteFunc(slices.Clone(in.lastAttempt()), func(c Change) bool { return c.From == c.To })
	if len(attempt) != 2 || attempt[0].From != 0 || attempt[0].To == 0 || attempt[1].To != 0 {
		return nil
	}
	why := attempt[1].Why
	if why == v1alpha1.ReasonRolledBack {
		why = in.Outcome
	}
	if why == v1alpha1.ReasonUnhealthy || why == v1alpha1.ReasonBreakerOpen || why == v1alpha1.ReasonCanaryNotReady {
		return &attempt[1]
	}
	return nil
}
