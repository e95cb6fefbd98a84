package health

import (
	"math"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/traffic"
)

// Traffic is how many requests the gateway sent to each track since the present share was
// confirmed: those of the disjoint windows of the last hour in which both could be told.
// It shows whether the gateway keeps to the weights, and says nothing about the canary.
type Traffic struct {
	// Counted says that the requests are known.
	Counted bool
	// Canary and Stable are the requests, 0 or more.
	Canary, Stable int64
	// Finding compares them with the share that the weights give the canary. It is empty
	// when they are not known, and where the share is 0.
	Finding traffic.Finding
	// NotCounted says why the requests are not known, in at most 500 bytes, without times;
	// empty when they are.
	NotCounted string
}

func uncounted(why string) Traffic { return Traffic{NotCounted: cut(why)} }

// unfitForTraffic says why the configuration does not count requests where they are divided
// between the tracks; empty: it does.
func (c Config) unfitForTraffic() string {
	switch c.Preset {
	case v1alpha1.PresetTraefik, v1alpha1.PresetIstio, v1alpha1.PresetLinkerd:
		return ""
	case v1alpha1.PresetPods:
		return "with health.preset Pods the requests are counted in the pods, wherever they come from; the preset of a gateway counts them where they are divided"
	}
	return "health.preset is not set, so no requests are counted where they are divided"
}

// traffic counts the requests of both tracks in the windows that are evidence.
func (in *Input) traffic(windows []Window) Traffic {
	if why := in.Config.unfitForTraffic(); why != "" {
		return uncounted(why)
	}
	var oldest time.Time
	if len(windows) > 0 {
		oldest = windows[len(windows)-1].End.Add(-Memory)
	}
	t := uncounted(in.awaitingWindow())
	var canary, stable float64
	for i := range windows {
		w := &windows[i]
		if !in.Config.onGrid(w.End) || w.Start.Before(oldest) {
			continue
		}
		if p := in.uncountable(w); p != nil {
			t.NotCounted = cut(p.Message)
			continue
		}
		t.Counted = true
		canary, stable = canary+w.Canary.Requests, stable+w.Stable.Requests
	}
	if t.Counted {
		t = Traffic{Counted: true, Canary: whole(math.Round(canary)), Stable: whole(math.Round(stable))}
		if in.CanaryShare > 0 {
			t.Finding = traffic.Judge(t.Canary, t.Stable, in.CanaryShare)
		}
	}
	return t
}

// uncountable says why the requests of both tracks are not known in a window, or nil.
// One gateway counts both: a track without any series, beside one that has some, has had
// no request, which is just what a gateway that ignores the weights can do.
func (in *Input) uncountable(w *Window) *Problem {
	found := 0
	for _, track := range []Track{TrackCanary, TrackStable} {
		r := w.Reading(track)
		p := in.Config.readable(w, track)
		switch {
		case p == nil && !r.OldestSample.IsZero() && r.OldestSample.Time().Before(in.ConfirmedAt):
			return problem(v1alpha1.ReasonAwaitingWindow, "the counts reach back to before the share was confirmed")
		case p == nil:
			found++
		case w.Problem != nil || r.Problem != nil || r.Found || !r.NewestSample.IsZero():
			return p
		}
	}
	if found == 0 {
		return in.Config.readable(w, TrackCanary)
	}
	return nil
}
