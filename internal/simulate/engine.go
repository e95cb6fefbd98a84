package simulate

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// soonest is how soon the controller looks again when it asks for a time that is over.
const soonest = 5 * time.Millisecond

// engine moves a world from one event to the next.
type engine struct {
	world      *world
	controller *controller
	journal    *journal

	// end is when to stop at the latest.
	end time.Duration
	// tick is the next tick of the metrics, and waiting the next incident.
	tick    time.Duration
	waiting int
	// calmFrom is when the scenario's values change no more.
	calmFrom time.Duration
	// moved is when the controller last wrote, or the verdict last changed.
	moved   time.Duration
	wakeups int
}

func newEngine(w *world, j *journal) *engine {
	e := &engine{world: w, journal: j, end: longest, tick: w.meter.first.Sub(w.script.start)}
	e.controller = &controller{world: w, journal: j, timer: never}
	if w.script.duration > 0 {
		e.end = w.script.duration
	}
	lines := []timeline{w.script.rps, w.script.stable.errors, w.script.stable.latency, w.script.canary.errors, w.script.canary.latency}
	for _, l := range w.script.checks {
		lines = append(lines, l)
	}
	for _, l := range lines {
		e.calmFrom = max(e.calmFrom, l.settled())
	}
	return e
}

// run moves the world until its end, or until nothing can change any more.
func (e *engine) run() (Ending, error) {
	w := e.world
	// A tick needs a look at every interval; the controller's own timers come beside.
	limit := 8*int(e.end/w.meter.interval) + 100_000
	for range limit {
		w.advance(e.next())
		if w.options.Progress != nil {
			w.options.Progress(Elapsed(w.now))
		}
		ticked, err := e.moment()
		if err != nil {
			return "", err
		}
		switch {
		case w.now >= e.end:
			e.journal.sample(w, w.evidence.verdict(w.clock()))
			if w.script.duration > 0 {
				return EndDuration, nil
			}
			return EndLimit, nil
		case ticked && w.script.duration == 0 && e.settled():
			return EndSettled, nil
		}
	}
	return "", fmt.Errorf("at %s the controller wakes up again and again: %s", Elapsed(w.now), readyText(&w.status))
}

// next is the time of the next event.
func (e *engine) next() time.Duration {
	w := e.world
	next := min(e.end, e.tick)
	if t := e.controller.timer; t >= 0 {
		if t <= w.now {
			t = w.now + soonest
		}
		next = min(next, t)
	}
	if e.waiting < len(w.script.incidents) {
		next = min(next, w.script.incidents[e.waiting].at)
	}
	for _, r := range w.routes {
		if r.pending {
			next = min(next, max(r.due, w.now))
		}
	}
	return next
}

// moment lets everything happen that is due now. It tells whether it was a tick.
func (e *engine) moment() (ticked bool, err error) {
	w := e.world
	woken := e.wakeups == 0 || e.controller.timer >= 0 && e.controller.timer <= w.now
	happened, err := e.incidents()
	if err != nil {
		return false, err
	}
	confirmed, err := w.confirm()
	if err != nil {
		return false, err
	}
	if ticked = w.now == e.tick; ticked {
		w.meter.record(w.stable, w.canary)
		e.tick += w.meter.interval
	}
	news := w.evidence.poll(w.clock(), w.now, w.mood)
	// The verdict that the controller now acts on. What it does can end its evidence.
	verdict := w.evidence.verdict(w.clock())
	if news {
		e.moved = w.now
	}
	if woken || happened || confirmed || news {
		if err := e.wake(); err != nil {
			return ticked, err
		}
	}
	if ticked {
		e.journal.sample(w, verdict)
	}
	return ticked, nil
}

// incidents lets happen what the scenario has for now. It tells whether the controller
// can see any of it: a metrics server in another mood shows with the next tick only.
func (e *engine) incidents() (seen bool, err error) {
	w := e.world
	for ; e.waiting < len(w.script.incidents); e.waiting++ {
		in := w.script.incidents[e.waiting]
		if in.at > w.now {
			break
		}
		if in.Command != "" && w.status.Attempt == 0 {
			// Nobody can give a command for an attempt that has not begun.
			if err := e.wake(); err != nil {
				return seen, err
			}
		}
		message, err := w.happen(in)
		if err != nil {
			return seen, err
		}
		e.journal.happened(w, message)
		seen = seen || in.Metrics == ""
	}
	return seen, nil
}

// wake lets the controller work until it rests. What it decides can make evidence due
// that can be read at once, and an approval awaited that is given at once.
func (e *engine) wake() error {
	w := e.world
	e.wakeups++
	for range maxPasses {
		writes := e.controller.statusWrites + e.controller.routeWrites
		if err := e.controller.settle(); err != nil {
			return err
		}
		if e.controller.statusWrites+e.controller.routeWrites > writes {
			e.moved = w.now
		}
		news := w.evidence.poll(w.clock(), w.now, w.mood)
		if news {
			e.moved = w.now
		}
		approved := w.options.Approve && w.status.Phase == v1alpha1.PhaseAwaitingApproval
		if approved {
			e.journal.happened(w, "the approval is given")
			if err := w.say(Command(v1alpha1.VerbApprove)); err != nil {
				return err
			}
		}
		if !news && !approved {
			return nil
		}
	}
	return fmt.Errorf("at %s the controller has not come to rest: %s", Elapsed(w.now), readyText(&w.status))
}

// settled tells whether nothing can change any more: the scenario is over, nothing is
// under way, and the rollout has ended or waits for a person.
func (e *engine) settled() bool {
	w := e.world
	if e.waiting < len(w.script.incidents) || e.controller.timer >= 0 || w.now < max(e.calmFrom, w.coldUntil) {
		return false
	}
	for _, r := range w.routes {
		if r.pending {
			return false
		}
	}
	s := &w.status
	c := w.evidence.config
	if w.evidence.signal.State == v1alpha1.VerdictDegraded && w.now < e.moved+c.For+2*c.Window {
		// It may still be found unhealthy.
		return false
	}
	switch s.Outcome {
	case v1alpha1.OutcomeCompleted, v1alpha1.OutcomeRolledBack, v1alpha1.OutcomeSuperseded:
		return true
	case v1alpha1.OutcomeInProgress, v1alpha1.OutcomePromoted, v1alpha1.OutcomeReturning:
	}
	return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) ||
		meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionStalled) ||
		s.Phase == v1alpha1.PhaseAwaitingApproval || s.Phase == v1alpha1.PhasePaused
}
