package rollout_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// journal is what happened in a world, in order.
type journal struct {
	count int
	// keep turns on lines, which cost time.
	keep  bool
	lines []string
	// wires are the weights that the controller wrote to each route, such as "web 95/5".
	wires []string
	// told are the reasons of the events.
	told []string
	// statusWrites counts the writes to the status.
	statusWrites int
	// scaled is what was scaled.
	scaled []rollout.Scale
	// zone, where it is set, makes the lines begin with a day of the week and a time.
	zone *time.Location

	last, health string
}

// counter returns a number that was never returned before.
func (j *journal) counter() int {
	j.count++
	return j.count
}

func (j *journal) line(at time.Time, format string, args ...any) {
	if !j.keep {
		return
	}
	when := offset(at)
	if j.zone != nil {
		when = at.In(j.zone).Format("Mon 15:04:05")
	}
	j.lines = append(j.lines, strings.TrimRight(when+"  "+fmt.Sprintf(format, args...), " "))
}

// status notes a write to the status, as a person would see it in `kubectl get` and
// `kubectl describe`.
func (j *journal) status(w *world) {
	j.statusWrites++
	if !j.keep {
		return
	}
	s := w.status()
	ready := conditionOf(s, v1alpha1.ConditionReady)
	text := fmt.Sprintf("status   %s %s, %s%%: %s: %s", s.Phase, stageText(s), shareText(s), ready.Reason, ready.Message)
	c := conditionOf(s, v1alpha1.ConditionHealthy)
	health := fmt.Sprintf("healthy  %s: %s: %s", c.Status, c.Reason, c.Message)
	switch {
	case text != j.last:
		j.line(w.at, "%s", text)
	case health == j.health:
		j.line(w.at, "status   (nothing of this has changed)")
	}
	if health != j.health {
		j.line(w.at, "%s", health)
	}
	j.last, j.health = text, health
}

func stageText(s *v1alpha1.WeightedRolloutStatus) string {
	if s.Stage == nil {
		return "-"
	}
	return s.Stage.Position
}

func shareText(s *v1alpha1.WeightedRolloutStatus) string {
	if s.Share.Desired == nil {
		return "?"
	}
	return string(*s.Share.Desired)
}

// route notes a write to a route.
func (j *journal) route(w *world, r *servedRoute) {
	refs := r.stored.Spec.Rules[1].BackendRefs
	p := pair{refs[0].Weight, refs[1].Weight}
	j.wires = append(j.wires, r.name+" "+p.String())
	j.line(w.at, "route    %s gets %s", r.name, p)
}

func (j *journal) served(w *world, names []string) {
	for _, name := range names {
		if w.gateway.rejects != "" {
			j.line(w.at, "gateway  cannot resolve %s", name)
			continue
		}
		j.line(w.at, "gateway  has taken %s", name)
	}
}

func (j *journal) events(w *world, events []rollout.Event) {
	for _, e := range events {
		j.told = append(j.told, e.Reason)
		kind := "event  "
		if e.Warning {
			kind = "WARNING"
		}
		j.line(w.at, "%s  %s: %s", kind, e.Reason, e.Message)
	}
}

// note writes down what a person or the world does.
func (w *world) note(format string, args ...any) {
	w.journal.line(w.at, "*        "+format, args...)
}

// shares returns the canary's weights that were written to a route, in order.
func (j *journal) shares(name string) []string {
	var shares []string
	for _, wire := range j.wires {
		if text, ok := strings.CutPrefix(wire, name+" "); ok {
			_, canary, _ := strings.Cut(text, "/")
			shares = append(shares, canary)
		}
	}
	return shares
}
