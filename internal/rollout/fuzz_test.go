package rollout_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// FuzzDecide gives Decide any status and any spec that can be decoded. It must not
// panic, must not change its input, must decide the same twice, and must not raise
// what it cannot prove.
func FuzzDecide(f *testing.F) {
	w := newWorld(f, smallSpec())
	seed := func(knobs uint16) {
		status, _ := json.Marshal(w.status())
		spec, _ := json.Marshal(w.object.spec)
		f.Add(status, spec, `{"id":"1","verb":"retry","attempt":1}`, "1", knobs)
	}
	seed(0)
	for range 12 {
		w.runFor(3 * time.Minute)
		seed(0b1111)
	}
	f.Add([]byte(`{"attempt":1,"outcome":"InProgress","share":{"desired":73},"stage":{"index":99,"weight":"x"}}`), []byte(`{}`), "null", "", uint16(0xffff))
	f.Add([]byte(`{"attempt":9223372036854775807,"outcome":"RolledBack","share":{"desired":"0"}}`), []byte(`{"revision":"v3"}`), "{", "-1", uint16(3))
	named := newWorld(f, updating(withWorkloads(smallSpec(), v1alpha1.CapacityScale)))
	named.canary = newFleet(v1alpha1.TrackCanary, 2, 1)
	named.stable.denied = true
	w.object.spec = named.object.spec
	for range 8 {
		named.runFor(5 * time.Minute)
		w.object.status = named.object.status
		seed(0b1111)
	}
	template := w.observe()
	f.Fuzz(func(t *testing.T, status, spec []byte, command, abort string, knobs uint16) {
		obs := template
		obs.Status, obs.Spec = template.Status.DeepCopy(), template.Spec.DeepCopy()
		if json.Unmarshal(status, obs.Status) != nil || json.Unmarshal(spec, obs.Spec) != nil {
			t.Skip("not a status and a spec")
		}
		knob := func(i int) bool { return knobs>>i&1 == 1 }
		obs.Orders = rollout.OrdersFrom(map[string]string{v1alpha1.CommandAnnotation: command, v1alpha1.AbortAnnotation: abort})
		obs.StableReady, obs.CanaryReady, obs.Deleting = knob(0), knob(1), knob(4)
		obs.Verdict = health.Verdict{RampReady: knob(2), StageReady: knob(3), State: v1alpha1.VerdictHealthy, Reason: v1alpha1.ReasonChecksPassed}
		if knob(5) {
			obs.Verdict = health.Verdict{State: v1alpha1.VerdictUnhealthy, Reason: v1alpha1.ReasonBreach}
		}
		if knob(6) {
			obs.Owner = "older"
		}
		if knob(7) {
			obs.Routes = nil
		}
		if knob(8) {
			obs.Routes = []rollout.Route{{Name: "web"}}
		}
		obs.SameTemplate = knob(9)
		if knob(10) {
			obs.StableWorkload, obs.CanaryWorkload = nil, nil
		}
		if knob(11) {
			obs.CanaryPods = nil
		}
		now := start.Add(time.Duration(knobs) * time.Second)
		statusBefore, specBefore := obs.Status.DeepCopy(), obs.Spec.DeepCopy()
		d := rollout.Decide(obs, now)
		if !reflect.DeepEqual(obs.Status, statusBefore) || !reflect.DeepEqual(obs.Spec, specBefore) {
			t.Fatal("the decision changed its input")
		}
		if again := rollout.Decide(obs, now); !reflect.DeepEqual(d, again) {
			t.Fatal("the same input gives two decisions")
		}
		s := see(obs, now, d)
		for _, check := range []func(seen) string{raiseWithinLimits, breakKept, stopKept, raiseOnEvidence, conflictWritesNothing, conflictHolds, onlyToReady, scaledForNeed, givenBackWhenIdle, stableUpdatedWhenProved} {
			if broken := check(s); broken != "" {
				t.Fatalf("%s\nfrom: %s\n  to: %s", broken, brief(s.was), brief(s.is))
			}
		}
	})
}
