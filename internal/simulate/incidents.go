package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// incident is one thing that a scenario does at one moment.
type incident struct {
	Happening
	at time.Duration
	// over is true for the end of a state.
	over bool
	// index is the place in the scenario's list, by which incidents of one moment are
	// ordered.
	index int
	// weights are those of RouteWeights.
	stable, canary int32
}

// incidentsOf reads the events and puts them in order of time. A state that lasts for
// a time is two incidents.
func incidentsOf(events []Happening) ([]incident, error) {
	var list []incident
	for i, e := range events {
		field := fmt.Sprintf("events[%d]", i)
		c, err := timesOf(field, e.At, "", e.For)
		if err != nil {
			return nil, err
		}
		in := incident{Happening: e, at: c.at, index: i}
		if err := in.check(field); err != nil {
			return nil, err
		}
		list = append(list, in)
		if c.lasts > 0 {
			in.at, in.over = c.at+c.lasts, true
			list = append(list, in)
		}
	}
	slices.SortStableFunc(list, func(a, b incident) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		// What ends makes room for what begins.
		if a.over != b.over && a.over {
			return -1
		}
		if a.over != b.over {
			return 1
		}
		return a.index - b.index
	})
	return list, overlapping(list)
}

// check looks at what kind of event it is.
func (in *incident) check(field string) error {
	kinds := in.kinds()
	if len(kinds) != 1 {
		return fmt.Errorf("%s sets %s: one event does one thing, so set exactly one of canary, stable, metrics, revision, command, paused and routeWeights", field, orNothing(kinds))
	}
	kind := kinds[0]
	state := kind == "canary" || kind == "stable" || kind == "metrics"
	if in.For != "" && !state {
		return fmt.Errorf("%s.for: %s is done in a moment: leave for out, or add a second event", field, kind)
	}
	if usual := in.usual(); in.For != "" && usual != "" {
		return fmt.Errorf("%s.for: %s is as if there were no event, so it has no end: leave for out, or set another value for that long", field, usual)
	}
	switch kind {
	case "canary":
		return oneOf(field+".canary", in.Canary, Ready, Unready)
	case "stable":
		return oneOf(field+".stable", in.Stable, Ready, Unready)
	case "metrics":
		return oneOf(field+".metrics", in.Metrics, MetricsFine, MetricsOutage, MetricsNaN, MetricsEmpty)
	case "command":
		return oneOf(field+".command", in.Command, commands()...)
	case "routeWeights":
		return in.readWeights(field + ".routeWeights")
	}
	if len(in.Revision) > 253 {
		return fmt.Errorf("%s.revision is longer than 253 characters: shorten it", field)
	}
	return nil
}

// usual names the state that a track or the metrics server has without an event, if
// the event sets that one: it ends other states, and none ends it.
func (in *incident) usual() string {
	switch {
	case in.Canary == Ready:
		return "canary: Ready"
	case in.Stable == Ready:
		return "stable: Ready"
	case in.Metrics == MetricsFine:
		return "metrics: Fine"
	}
	return ""
}

// commands are all the commands that a rollout understands.
func commands() []Command {
	all := []Command{CommandAbort, CommandPause}
	for _, verb := range []v1alpha1.Verb{v1alpha1.VerbApprove, v1alpha1.VerbSkip, v1alpha1.VerbPromote, v1alpha1.VerbRetry, v1alpha1.VerbFinish, v1alpha1.VerbResume} {
		all = append(all, Command(verb))
	}
	return all
}

// kinds lists the fields that say what happens.
func (in *incident) kinds() []string {
	var set []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"canary", in.Canary != ""}, {"stable", in.Stable != ""}, {"metrics", in.Metrics != ""},
		{"revision", in.Revision != ""}, {"command", in.Command != ""}, {"paused", in.Paused != nil},
		{"routeWeights", in.RouteWeights != ""},
	} {
		if f.set {
			set = append(set, f.name)
		}
	}
	return set
}

func orNothing(kinds []string) string {
	if len(kinds) == 0 {
		return "nothing"
	}
	return strings.Join(kinds, " and ")
}

func oneOf[T ~string](field string, v T, allowed ...T) error {
	if slices.Contains(allowed, v) {
		return nil
	}
	texts := make([]string, len(allowed))
	for i, a := range allowed {
		texts[i] = string(a)
	}
	return fmt.Errorf("%s is %q: use one of %s", field, string(v), strings.Join(texts, ", "))
}

// readWeights reads "stable/canary".
func (in *incident) readWeights(field string) error {
	stable, canary, ok := strings.Cut(in.RouteWeights, "/")
	read := func(text string) int32 {
		f, err := v1alpha1.Decimal(text).Float64()
		if err != nil || !(f >= 0 && f <= maxWeight) || f != float64(int32(f)) {
			ok = false
			return 0
		}
		return int32(f)
	}
	in.stable, in.canary = read(stable), read(canary)
	if !ok || in.stable+in.canary == 0 {
		return fmt.Errorf("%s is %q: give the weights of stable and canary, two whole numbers from 0 to %d of which one is above 0, as in 20/80", field, in.RouteWeights, maxWeight)
	}
	return nil
}

// overlapping refuses states that overlap: the end of one would end the other.
func overlapping(list []incident) error {
	type span struct {
		index int
		until time.Duration
	}
	open := map[string]span{}
	ends := map[int]time.Duration{}
	for _, in := range list {
		if in.over {
			ends[in.index] = in.at
		}
	}
	for _, in := range list {
		kind := in.kinds()[0]
		if in.over {
			continue
		}
		if was, ok := open[kind]; ok && in.at < was.until {
			return fmt.Errorf("events[%d]: %s is set again while events[%d] still lasts, until %s: move one of the two", in.index, kind, was.index, was.until)
		}
		if until, ok := ends[in.index]; ok {
			open[kind] = span{in.index, until}
		}
	}
	return nil
}
