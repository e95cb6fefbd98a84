package played

import (
	"bytes"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// TestC01WeightsAreNoPercentages: weights that are left out are not zero, and a
// weight is a part of the rule's sum.
func TestC01WeightsAreNoPercentages(t *testing.T) {
	w := newWorld(t)
	for name, start := range map[string][2]*int32{
		"left-out": {nil, nil}, "eight-two": {ptr.To[int32](8), ptr.To[int32](2)}, "hundred-hundred": {ptr.To[int32](100), ptr.To[int32](100)},
	} {
		w.create(newRoute(w.namespace, name, start[0], start[1]))
		w.rolloutFor(name)
	}
	w.startManager()
	for name, want := range map[string]struct {
		start    string
		observed float64
	}{"left-out": {"1/1", 50}, "eight-two": {"8/2", 20}, "hundred-hundred": {"100/100", 50}} {
		w.awaitPhase(name, v1alpha1.PhasePromoted)
		w.wantWeights(name, want.start, "100/0", "99/1", "95/5", "90/10", "80/20", "50/50", "20/80", "0/100")
		first := w.api.since(0, func(r *request) bool { return r.isStatusWrite() && r.Name == name && r.accepted() })[0]
		patch, err := first.patch()
		if err != nil {
			t.Fatal(err)
		}
		if observed := number(at(patch, "status", "share", "observed")); observed != want.observed {
			t.Errorf("%s: the observed share is %g percent at first, want %g", name, observed, want.observed)
		}
		if desired := number(at(patch, "status", "share", "desired")); desired != 0 {
			t.Errorf("%s: the first intent is %g percent, want 0", name, desired)
		}
	}
}

// TestC02ZeroIsOnTheWire: a weight of 0 is in the body of the request, where
// leaving it out would mean 1.
func TestC02ZeroIsOnTheWire(t *testing.T) {
	w := newWorld(t)
	w.create(newRoute(w.namespace, "rolled-back", nil, nil))
	w.rolloutFor("rolled-back", soak(2, "10m"))
	w.create(newRoute(w.namespace, "promoted", nil, nil))
	w.rolloutFor("promoted", stages("1s", "50"))
	w.startManager()
	w.awaitShare("rolled-back", "10")
	w.prom.set(w.namespace, canaryOf("rolled-back"), traffic{perSecond: 50, failed: 0.25})
	w.awaitPhase("rolled-back", v1alpha1.PhaseRolledBack)
	w.awaitPhase("promoted", v1alpha1.PhasePromoted)

	writes := func(name string) []*request {
		return w.api.since(0, func(r *request) bool { return r.isRouteWrite() && r.Name == name && r.accepted() })
	}
	back, up := writes("rolled-back"), writes("promoted")
	const stable, canary = `"path":"/spec/rules/0/backendRefs/0/weight","value":`, `"path":"/spec/rules/0/backendRefs/1/weight","value":`
	for what, want := range map[string]struct {
		write *request
		texts []string
	}{
		"at the start":  {back[0], []string{stable + "100", canary + "0}"}},
		"the rollback":  {back[len(back)-1], []string{stable + "100", canary + "0}"}},
		"the promotion": {up[len(up)-1], []string{stable + "0}", canary + "100"}},
	} {
		for _, text := range want.texts {
			if !bytes.Contains(want.write.Body, []byte(text)) {
				t.Errorf("%s: the body lacks %s: %s", what, text, want.write.Body)
			}
		}
	}
	w.wantWeights("rolled-back", "1/1", "100/0", "99/1", "95/5", "90/10", "100/0")
	w.wantWeights("promoted", "1/1", "100/0", "70/30", "50/50", "20/80", "0/100")
}

// TestC03NeverBothZero: neither a run to promotion nor a rollback ever shows a
// rule whose weights add up to 0.
func TestC03NeverBothZero(t *testing.T) {
	w := newWorld(t)
	w.rollout("promoted")
	w.rollout("rolled-back", soak(4, "10m"))
	w.startManager()
	w.awaitShare("rolled-back", "50")
	w.prom.set(w.namespace, canaryOf("rolled-back"), traffic{perSecond: 50, failed: 0.25})
	w.awaitPhase("rolled-back", v1alpha1.PhaseRolledBack)
	w.awaitPhase("promoted", v1alpha1.PhasePromoted)
	// Both are compared as a whole, so a 0/0 in between would show.
	w.wantWeights("rolled-back", "100/0", "99/1", "95/5", "90/10", "80/20", "50/50", "100/0")
	w.wantWeights("promoted", "100/0", "99/1", "95/5", "90/10", "80/20", "50/50", "20/80", "0/100")
	for _, r := range w.api.since(0, (*request).isRouteWrite) {
		if p, ok := r.firstPair(); !ok || p.stable+p.canary != 100 {
			t.Errorf("request %d does not set both weights: %s", r.Number, r.Body)
		}
	}
}
