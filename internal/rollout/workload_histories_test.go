package rollout_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// updatedSpec lets the revision follow from the canary's workload, and the controller
// update stable.
func updatedSpec(t *rapid.T) v1alpha1.WeightedRolloutSpec {
	capacity := rapid.SampledFrom([]v1alpha1.CapacityMode{v1alpha1.CapacityCheck, v1alpha1.CapacityScale, v1alpha1.CapacityIgnore}).Draw(t, "capacity")
	return updating(derived(withWorkloads(smallSpec(), capacity)))
}

// officeSpec has windows, which open an hour into the history at the latest, and a
// deadline.
func officeSpec(t *rapid.T) v1alpha1.WeightedRolloutSpec {
	spec := smallSpec()
	if rapid.Bool().Draw(t, "workloads") {
		spec = updating(derived(withWorkloads(spec, v1alpha1.CapacityCheck)))
	}
	spec.Plan.Windows = officeHours()
	spec.ProgressDeadline = rapid.SampledFrom([]v1alpha1.Duration{"", "30m", "2h"}).Draw(t, "deadline")
	return spec
}

// officeHours are those of Berlin, which has 10:00 when a world begins.
func officeHours() []v1alpha1.Window {
	return []v1alpha1.Window{{Days: []v1alpha1.Day{"Mon", "Tue", "Wed", "Thu", "Fri"}, From: "09:00", To: "17:00", TimeZone: "Europe/Berlin"}}
}

// named tells whether the spec names workloads.
func (h *history) named() bool { return h.object.spec.Canary.Workload != nil }

// drawFleets draws how many pods there are at first, and what scales them.
func (h *history) drawFleets() {
	h.counts = draw(h, "counts", divisions...)
	if !h.named() {
		return
	}
	h.canary.scaleTo(draw[int32](h, "canary replicas", 0, 1, 3, 10))
	if rapid.Bool().Draw(h.t, "autoscaler") {
		h.canary.bound(1, draw[int32](h, "max", 4, 20))
	}
	if rapid.IntRange(0, 2).Draw(h.t, "stable autoscaler") == 0 {
		h.stable.bound(2, 20)
	}
	h.canary.startup = draw(h, "startup", time.Second, 20*time.Second, 10*time.Minute)
	h.tend()
	if rapid.Bool().Draw(h.t, "office hours are over") {
		h.at = h.at.Add(7 * time.Hour)
	}
}

// workloadActions are what can happen to workloads, where there are any.
func (h *history) workloadActions() []string {
	if !h.named() {
		return nil
	}
	return []string{"replicas", "replicas", "template", "autoscaler", "denied", "missing", "night"}
}

func (h *history) doWithWorkloads(action string) {
	f := h.fleet(v1alpha1.TrackCanary)
	if action != "replaced" && rapid.IntRange(0, 2).Draw(h.t, "stable") == 0 {
		f = h.stable
	}
	switch action {
	case "sync":
		h.syncTool = nil
		if rapid.Bool().Draw(h.t, "on") {
			h.sync(draw(h, "every", 2*time.Second, 3*time.Minute), draw(h, "synced", weightsOf(100, 0), weightsOf(1, 1), pair{}))
			// Long enough for a fight, and not for a whole night of it.
			h.syncTool.until = h.at.Add(20 * time.Minute)
		}
	case "counts":
		h.counts = draw(h, "counts", divisions...)
	case "replaced":
		f.restart()
	case "replicas":
		f.scaleTo(draw[int32](h, "replicas", 0, 1, 2, 5, 10, 14))
	case "template":
		f.deploy(rapid.IntRange(1, 3).Draw(h.t, "template"))
	case "autoscaler":
		if f.autoscaler = nil; rapid.Bool().Draw(h.t, "there is one") {
			f.bound(draw[int32](h, "min", 1, 2, 6), draw[int32](h, "max", 6, 20))
		}
		f.version++
	case "denied":
		f.denied = !f.denied
	case "missing":
		f.missing = !f.missing
		f.version++
	case "night":
		h.runFor(15 * time.Hour)
	}
}

// revise asks for another revision: by name, or by another template.
func (h *history) revise(s *v1alpha1.WeightedRolloutSpec) {
	if s.Revision == "" {
		h.canary.deploy(rapid.IntRange(1, 3).Draw(h.t, "template"))
		return
	}
	s.Revision = draw(h, "revision", "v1", "v2", "v3")
	if rapid.IntRange(0, 3).Draw(h.t, "stated") == 0 {
		s.Stable.Revision = draw(h, "stable revision", "", "v1", "v2")
	}
}

func (h *history) tamperWithWorkloads(s *v1alpha1.WeightedRolloutStatus) {
	switch rapid.IntRange(0, 4).Draw(h.t, "tamper with") {
	case 0:
		s.Progress = draw(h, "progress", nil, &v1alpha1.ProgressStatus{}, &v1alpha1.ProgressStatus{WaitedFor: "-5h"}, &v1alpha1.ProgressStatus{WaitedFor: "x"})
	case 1:
		s.Contention = draw(h, "contention", nil, &v1alpha1.ContentionStatus{}, &v1alpha1.ContentionStatus{Count: -3}, &v1alpha1.ContentionStatus{Count: 99})
	case 2:
		s.Capacity = draw(h, "capacity", nil, &v1alpha1.CapacityStatus{}, &v1alpha1.CapacityStatus{Replicas: -4})
	case 3:
		s.WarmPods = draw(h, "warm pods", nil, []string{}, []string{"x"})
	case 4:
		if s.Stage != nil {
			s.Stage.Skipped = !s.Stage.Skipped
		}
	}
}

// settleFleets puts everything about pods and workloads right.
func (h *history) settleFleets() {
	h.syncTool = nil
	for _, f := range []*fleet{h.stable, h.canary} {
		f.missing, f.denied, f.startup = false, false, time.Second
		if a := f.autoscaler; a != nil {
			f.bound(min(a.min, 40), 40)
		}
		if f.replicas == 0 {
			f.scaleTo(1)
		}
		f.version++
	}
	h.tend()
	most := max(h.canary.replicas, h.stable.replicas)
	if c := h.status().Capacity; c != nil {
		most = max(most, min(c.Replicas, 40))
	}
	if h.object.spec.Canary.Capacity != v1alpha1.CapacityScale {
		h.canary.scaleTo(most)
		h.stable.scaleTo(most)
	}
	h.tend()
}
