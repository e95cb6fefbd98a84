package rollout_test

import (
	"errors"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// writeWorkloads scales and updates as decided, after the status and before the routes.
// One that is refused does not keep a route from being written.
func (w *world) writeWorkloads(obs rollout.Observation, d rollout.Decision) error {
	refused := map[v1alpha1.TrackName]bool{}
	var failed error
	for _, s := range d.Scales {
		err := w.scale(s, d)
		if errors.Is(err, errCrashed) {
			return err
		}
		refused[s.Track] = refused[s.Track] || errors.Is(err, errRefused)
		if err != nil && (!d.Release || !errors.Is(err, errRefused)) {
			failed = err
		}
	}
	if d.UpdateStable {
		err := w.updateStable(obs, d)
		if errors.Is(err, errCrashed) {
			return err
		}
		refused[v1alpha1.TrackStable] = refused[v1alpha1.TrackStable] || errors.Is(err, errRefused)
		if err != nil {
			failed = err
		}
	}
	for _, track := range []v1alpha1.TrackName{v1alpha1.TrackStable, v1alpha1.TrackCanary} {
		if refused[track] {
			w.controller.refusals[workloadOf(track)] = "deployments.apps is forbidden"
			continue
		}
		delete(w.controller.refusals, workloadOf(track))
	}
	return failed
}

// scale sets replicas, or the minimum of an autoscaler: never less than there is, and
// back only from what was set.
func (w *world) scale(s rollout.Scale, d rollout.Decision) error {
	f := w.fleet(s.Track)
	if f.missing || s.Kind == autoscalerKind && f.autoscaler == nil {
		return nil
	}
	now := f.value(s.Kind)
	if raise := s.To > s.From; raise && now >= s.To || !raise && now != s.From {
		return nil
	}
	back := f.asked[s.Kind]
	f.asked[s.Kind] = s.To
	if f.denied {
		return errRefused
	}
	return w.write(func() {
		w.laws.scaleWrite(w, s, back, d)
		f.write(s.Kind, s.To)
		w.journal.scaled = append(w.journal.scaled, s)
		w.journal.line(w.at, "scale    %s %s goes from %d to %d", s.Kind, s.Name, s.From, s.To)
	})
}

// updateStable gives stable's workload the canary's template, if stable's is still the
// one that was read.
func (w *world) updateStable(obs rollout.Observation, d rollout.Decision) error {
	switch {
	case w.stable.missing || w.stable.template == w.canary.template:
		return nil
	case w.stable.generation != obs.StableWorkload.Generation:
		return errConflict
	case w.stable.denied:
		return errRefused
	}
	return w.write(func() {
		w.laws.stableWrite(w, d)
		w.stable.deploy(w.canary.template)
		w.journal.line(w.at, "update   the workload of stable gets the template of the canary's")
	})
}

// withWorkloads lets a spec name both workloads.
func withWorkloads(spec v1alpha1.WeightedRolloutSpec, capacity v1alpha1.CapacityMode) v1alpha1.WeightedRolloutSpec {
	spec = *spec.DeepCopy()
	spec.Stable.Workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-stable"}
	spec.Canary.Workload = &v1alpha1.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-canary"}
	spec.Canary.Capacity = capacity
	return spec
}

// derived leaves the revision to the canary's workload.
func derived(spec v1alpha1.WeightedRolloutSpec) v1alpha1.WeightedRolloutSpec {
	spec.Revision = ""
	return spec
}

// updating lets the controller update stable.
func updating(spec v1alpha1.WeightedRolloutSpec) v1alpha1.WeightedRolloutSpec {
	spec.Promotion.Mode = v1alpha1.PromotionUpdateStable
	return spec
}
