package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

// fleet is what runs the pods of a track: a small model of a Deployment, of the
// controller behind it, and of an autoscaler. It moves only when it is tended.
type fleet struct {
	track v1alpha1.TrackName
	// template is the version of the pod template, labels aside.
	template int
	replicas int32
	// generation is that of the workload's spec.
	generation int64
	autoscaler *autoscaler
	// startup is how long a pod takes to become ready.
	startup time.Duration
	pods    []pod
	// wave counts the sets of pods: every template and every restart has its own.
	wave, made int
	// version counts what a watch would tell of.
	version int

	// missing hides the workload; denied lets the API server refuse every write to it.
	missing, denied bool
	// asked is what the controller has tried to set last, by kind; found are all values that
	// others have left.
	asked map[string]int32
	found []int32
}

// autoscaler is a HorizontalPodAutoscaler. It keeps the replicas between two bounds;
// what is between them is left to the tests.
type autoscaler struct{ min, max int32 }

// pod becomes ready at a time.
type pod struct {
	uid  string
	wave int
	// template is what it was made from.
	template int
	ready    time.Time
	up       bool
}

// newFleet returns a fleet all of whose pods have been ready for long.
func newFleet(track v1alpha1.TrackName, template int, replicas int32) *fleet {
	f := &fleet{track: track, template: template, replicas: replicas, generation: 1, found: []int32{replicas}, asked: map[string]int32{}}
	f.tend(start.Add(-time.Hour))
	f.startup = 20 * time.Second
	return f
}

// tend does what happens by itself: an autoscaler keeps to its bounds, missing pods are
// started, and the pods of an earlier wave go once all of the newest are ready.
func (f *fleet) tend(now time.Time) {
	if a := f.autoscaler; a != nil && f.replicas > 0 && (f.replicas < a.min || f.replicas > a.max) {
		f.replicas = min(max(f.replicas, a.min), a.max)
		f.found = append(f.found, f.replicas)
		f.changed()
	}
	for f.count() < int(f.replicas) {
		f.made++
		f.version++
		f.pods = append(f.pods, pod{uid: fmt.Sprintf("%c%06d-%s", f.track[0], f.made, "pod"), wave: f.wave, template: f.template, ready: now.Add(f.startup)})
	}
	for i := len(f.pods) - 1; i >= 0 && f.count() > int(f.replicas); i-- {
		if f.pods[i].wave == f.wave {
			f.pods = slices.Delete(f.pods, i, i+1)
			f.version++
		}
	}
	up := 0
	for i := range f.pods {
		p := &f.pods[i]
		if !p.up && !p.ready.After(now) {
			p.up = true
			f.version++
		}
		if p.up && p.wave == f.wave {
			up++
		}
	}
	if up == int(f.replicas) && len(f.pods) > up {
		f.pods = slices.DeleteFunc(f.pods, func(p pod) bool { return p.wave != f.wave })
		f.version++
	}
}

// count is the number of pods of the newest wave, ready or not.
func (f *fleet) count() (n int) {
	for _, p := range f.pods {
		if p.wave == f.wave {
			n++
		}
	}
	return n
}

// changed is a write to the spec of the workload.
func (f *fleet) changed() {
	f.generation++
	f.version++
}

// ready lists the uids of the pods that are ready, sorted.
func (f *fleet) ready() []string {
	var uids []string
	for _, p := range f.pods {
		if p.up {
			uids = append(uids, p.uid)
		}
	}
	slices.Sort(uids)
	return uids
}

// unready says why the template is not rolled out, or is empty.
func (f *fleet) unready() string {
	if n := len(f.ready()); n != int(f.replicas) || n != len(f.pods) {
		return fmt.Sprintf("%d of %d pods are of its template and ready", n, f.replicas)
	}
	return ""
}

// outdated says that pods of another template are left, or is empty.
func (f *fleet) outdated() string {
	for _, p := range f.pods {
		if p.template != f.template {
			return fmt.Sprintf("pod %s is of template %d, not %d", p.uid, p.template, f.template)
		}
	}
	return ""
}

// deploy gives the fleet another template, by another hand than the controller's.
func (f *fleet) deploy(template int) {
	f.template = template
	f.wave++
	f.changed()
}

// restart replaces every pod, as a rolling restart does.
func (f *fleet) restart() { f.deploy(f.template) }

// scaleTo sets the replicas by another hand.
func (f *fleet) scaleTo(replicas int32) {
	if f.replicas == replicas {
		return
	}
	f.replicas = replicas
	f.changed()
	f.leave(replicas)
}

// bound sets the bounds of the autoscaler by another hand.
func (f *fleet) bound(lowest, highest int32) {
	f.autoscaler = &autoscaler{min: lowest, max: highest}
	f.version++
	f.leave(lowest)
}

// leave notes what another hand has left.
func (f *fleet) leave(value int32) { f.found = append(f.found, value) }

// value is what the controller would set: the replicas, or the autoscaler's minimum.
func (f *fleet) value(kind string) int32 {
	if kind == autoscalerKind && f.autoscaler != nil {
		return f.autoscaler.min
	}
	return f.replicas
}

// write is a write of the controller.
func (f *fleet) write(kind string, value int32) {
	if kind == autoscalerKind {
		a := *f.autoscaler
		a.min = value
		f.autoscaler = &a
		f.version++
		return
	}
	f.replicas = value
	f.changed()
}

// next is when the next pod becomes ready.
func (f *fleet) next() []time.Time {
	var at []time.Time
	for _, p := range f.pods {
		if !p.up {
			at = append(at, p.ready)
		}
	}
	return at
}

// fork returns a copy of its own.
func (f *fleet) fork() *fleet {
	c := *f
	c.pods, c.found, c.asked = slices.Clone(f.pods), slices.Clone(f.found), maps.Clone(f.asked)
	return &c
}

const autoscalerKind = "HorizontalPodAutoscaler"

// observe returns what the controller reads of the workload that the spec names, or nil.
func (f *fleet) observe(ref *v1alpha1.WorkloadReference, refusal string, ready bool) *rollout.Workload {
	if ref == nil {
		return nil
	}
	w := &rollout.Workload{Kind: ref.Kind, Name: ref.Name, WriteError: refusal}
	if f.missing {
		w.Problem = "there is no such workload: create it, or correct the name in the spec"
		return w
	}
	w.Replicas = f.replicas
	if ref.Kind != "Deployment" && ref.Kind != "StatefulSet" {
		return w
	}
	w.Generation, w.Revision, w.Unready, w.Outdated = f.generation, f.revision(), f.unready(), f.outdated()
	if !ready {
		w.Unready = "none of its pods is ready"
	}
	if a := f.autoscaler; a != nil {
		w.Autoscaler = &rollout.Autoscaler{Name: ref.Name, Min: a.min, Max: a.max}
	}
	return w
}

// revision stands for the pod template with its labels, which are the track's own.
func (f *fleet) revision() string { return fmt.Sprintf("%s-%d", f.track, f.template) }

// fleet returns the fleet of a track.
func (w *world) fleet(track v1alpha1.TrackName) *fleet {
	if track == v1alpha1.TrackStable {
		return w.stable
	}
	return w.canary
}

// tend lets both fleets go on.
func (w *world) tend() {
	w.stable.tend(w.at)
	w.canary.tend(w.at)
}

// observeFleets fills in what is known of pods and workloads.
func (w *world) observeFleets(obs *rollout.Observation) {
	w.tend()
	w.controller.fleets = w.fleets()
	if obs.StableReady = w.stableReady && len(w.stable.ready()) > 0; obs.StableReady {
		obs.StablePods = w.stable.ready()
	}
	if obs.CanaryReady = w.canaryReady && len(w.canary.ready()) > 0; obs.CanaryReady {
		obs.CanaryPods = w.canary.ready()
	}
	obs.StableElsewhere, obs.CanaryElsewhere = w.stableElsewhere, w.canaryElsewhere
	if w.sharedPods {
		obs.CanaryPods = obs.StablePods
	}
	spec := &w.object.spec
	obs.StableWorkload = w.stable.observe(spec.Stable.Workload, w.controller.refusals[workloadOf(v1alpha1.TrackStable)], obs.StableReady)
	obs.CanaryWorkload = w.canary.observe(spec.Canary.Workload, w.controller.refusals[workloadOf(v1alpha1.TrackCanary)], obs.CanaryReady)
	if obs.StableWorkload != nil && obs.CanaryWorkload != nil {
		read := obs.StableWorkload.Revision != "" && obs.CanaryWorkload.Revision != ""
		obs.SameTemplate = read && w.stable.template == w.canary.template
	}
}

// fleets is what a watch of pods and workloads would tell of.
func (w *world) fleets() [2]int { return [2]int{w.stable.version, w.canary.version} }

func workloadOf(track v1alpha1.TrackName) string { return "workload " + string(track) }
