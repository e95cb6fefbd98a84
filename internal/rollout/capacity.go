package rollout

import (
	"fmt"
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/internal/workload"
)

// maxReplicas is the most that a record of replicas can sensibly say.
const maxReplicas = 100_000

// capacityMode is what the spec says about replicas. Without both workloads there is
// nothing to compare.
func (d *draft) capacityMode() v1alpha1.CapacityMode {
	t := d.obs.Spec.Canary
	if t == nil || !d.obs.bothWorkloads() || t.Capacity == v1alpha1.CapacityIgnore {
		return v1alpha1.CapacityIgnore
	}
	if t.Capacity == v1alpha1.CapacityScale {
		return v1alpha1.CapacityScale
	}
	return v1alpha1.CapacityCheck
}

// serving returns the track that the traffic comes from, and testing the one that it
// goes to: the track under test.
func (d *draft) serving() *Workload {
	if d.returning() {
		return d.obs.CanaryWorkload
	}
	return d.obs.StableWorkload
}

func (d *draft) testing() (*Workload, v1alpha1.TrackName, int) {
	if d.returning() {
		return d.obs.StableWorkload, v1alpha1.TrackStable, len(d.obs.StablePods)
	}
	return d.obs.CanaryWorkload, v1alpha1.TrackCanary, len(d.obs.CanaryPods)
}

// allTraffic is how many replicas all of the traffic takes: the most that the track
// that serves has been asked to have in this attempt. It may have been scaled in since,
// because some of its traffic has moved away.
func (d *draft) allTraffic() int32 {
	most := int32(1)
	if c := d.status.Capacity; c != nil && c.Replicas <= maxReplicas {
		most = max(most, c.Replicas)
	}
	if w := d.serving(); w != nil {
		most = max(most, w.Replicas)
	}
	return most
}

// noteCapacity records how many replicas all of the traffic takes. It is written with
// what else is written, and never alone.
func (d *draft) noteCapacity() {
	if !d.moved || !d.open() || !d.known || !d.obs.bothWorkloads() {
		return
	}
	if d.status.Capacity == nil {
		d.status.Capacity = &v1alpha1.CapacityStatus{}
	}
	d.status.Capacity.Replicas = d.allTraffic()
}

// forgetCapacity begins to count the replicas anew: another track serves, or another
// attempt begins. What was scaled stays on record until it is given back.
func (d *draft) forgetCapacity() {
	if c := d.status.Capacity; c != nil {
		c.Replicas = 0
	}
}

// runsRevision tells whether only pods of the canary's present template are behind it.
func (d *draft) runsRevision() bool {
	w := d.obs.CanaryWorkload
	if d.returning() || w == nil || w.Outdated == "" {
		return true
	}
	d.wait(v1alpha1.ReasonCanaryNotReady, "%s does not run its pod template yet, so no more traffic is sent to it: %s", w, w.Outdated)
	return false
}

// roomFor tells whether the track under test has the ready replicas that a part of the
// traffic takes. If not, it says what is awaited, and asks for them where it may.
func (d *draft) roomFor(part weights.Share) bool {
	if !d.runsRevision() {
		return false
	}
	mode := d.capacityMode()
	if mode == v1alpha1.CapacityIgnore {
		return true
	}
	w, track, have := d.testing()
	need := workload.Needed(part, d.allTraffic())
	if have >= int(need) {
		return true
	}
	d.wait(v1alpha1.ReasonInsufficientCapacity, "%s has %d ready %s, and %s percent of the traffic takes %d (of %d for all of it)",
		w, have, plural(have, "replica"), percent(part), need, d.allTraffic())
	if mode == v1alpha1.CapacityCheck {
		d.message += ": scale it, or set canary.capacity: Scale"
		return false
	}
	d.scaleUp(w, track, need)
	return false
}

// switchedOn tells whether the track under test is asked to have any replicas, and asks
// for them where that is allowed: without any, waiting for its endpoints is in vain.
func (d *draft) switchedOn(part weights.Share) bool {
	w, _, _ := d.testing()
	if d.capacityMode() != v1alpha1.CapacityScale || w.Replicas > 0 {
		return true
	}
	return d.roomFor(part)
}

// scaleUp asks for replicas, the intent first. An autoscaler takes a workload of 0
// replicas as switched off, so that the first ones are asked for directly.
func (d *draft) scaleUp(w *Workload, track v1alpha1.TrackName, need int32) {
	ask := Scale{Track: track, Kind: w.Kind, Name: w.Name, From: w.Replicas, To: need}
	if a := w.Autoscaler; a != nil && w.Replicas > 0 {
		ask.Kind, ask.Name, ask.From = autoscalerKind, a.Name, a.Min
		if need > a.Max {
			d.stall(v1alpha1.ReasonCapacityLimit, "%s; maxReplicas of %s %q is %d: raise it to %d at least", d.message, autoscalerKind, a.Name, a.Max, need)
			return
		}
	}
	if ask.From >= ask.To {
		if w.WriteError != "" {
			d.forgetScale(ask)
		}
		d.message += ": they are on their way"
		return
	}
	if w.WriteError != "" {
		d.stall(v1alpha1.ReasonWorkloadWriteFailed, "%s %q cannot be scaled to %d: %s", ask.Kind, ask.Name, ask.To, w.WriteError)
	} else {
		d.message += ": they are on their way"
	}
	d.recordScale(ask, w.WriteError != "")
	d.scales = append(d.scales, ask)
}

// recordScale keeps what the object had before the first raise, and what it is to have.
// What is on record may have been refused, and then nobody else has set it.
func (d *draft) recordScale(ask Scale, refused bool) {
	if d.status.Capacity == nil {
		d.status.Capacity = &v1alpha1.CapacityStatus{Replicas: d.allTraffic()}
	}
	c := d.status.Capacity
	i := slices.IndexFunc(c.Scaled, func(s v1alpha1.ScaledStatus) bool { return s.Track == ask.Track && s.Kind == ask.Kind })
	if i < 0 || c.Scaled[i].Name != ask.Name {
		c.Scaled = slices.DeleteFunc(c.Scaled, func(s v1alpha1.ScaledStatus) bool { return s.Track == ask.Track && s.Kind == ask.Kind })
		c.Scaled = append(c.Scaled, v1alpha1.ScaledStatus{Track: ask.Track, Kind: ask.Kind, Name: ask.Name, From: ask.From, To: ask.To})
	} else {
		if c.Scaled[i].To == ask.To {
			return
		}
		if ask.From != c.Scaled[i].To && !refused {
			// Somebody else has set it since: that is what there is to give back.
			c.Scaled[i].From = ask.From
		}
		c.Scaled[i].To = ask.To
	}
	d.event(false, v1alpha1.ReasonScaled, "%s %q goes from %d to %d, which the next share takes", ask.Kind, ask.Name, ask.From, ask.To)
}

// forgetScale drops the record of a raise that was refused, and that another hand has
// made since: there is nothing to give back.
func (d *draft) forgetScale(ask Scale) {
	if c := d.status.Capacity; c != nil {
		c.Scaled = slices.DeleteFunc(c.Scaled, func(s v1alpha1.ScaledStatus) bool { return s.Track == ask.Track && s.Kind == ask.Kind })
	}
}

// giveBack returns what was scaled once it is not needed any more: a workload's replicas
// when it has no traffic, an autoscaler's minimum when the rollout is over. It never
// decides anything, and keeps nothing else from happening. What serves another rollout's
// rules as well keeps what it has.
func (d *draft) giveBack() {
	c := d.status.Capacity
	if c == nil || len(c.Scaled) == 0 || d.obs.Owner != "" || d.obs.PartOwner != "" || d.obs.Spec.Mode == v1alpha1.ModeObserve {
		return
	}
	kept := c.Scaled[:0]
	for _, s := range c.Scaled {
		if !d.idle(s) || d.returnScale(s) {
			kept = append(kept, s)
		}
	}
	c.Scaled = kept
	if len(kept) == 0 && !d.open() {
		d.status.Capacity = nil
	}
}

// idle tells whether what was scaled is not needed any more.
func (d *draft) idle(s v1alpha1.ScaledStatus) bool {
	if !d.known || d.open() && !d.obs.Deleting || d.obs.Deleting && !d.release {
		return false
	}
	if !d.obs.Deleting && (!d.confirmed() || d.moved) {
		return false
	}
	if s.Kind == autoscalerKind {
		return true
	}
	if d.obs.Deleting && !d.takenByGateways() {
		return false
	}
	if s.Track == v1alpha1.TrackCanary {
		return d.share == weights.ShareNone && !slices.ContainsFunc(d.obs.Routes, Route.sendsToCanary)
	}
	return d.share == weights.ShareAll
}

// sendsToCanary tells whether the route gives the canary any traffic, whatever is on
// record: another hand may have written it.
func (r Route) sendsToCanary() bool {
	_, high := r.Inspection.Observed()
	return r.Found && high > weights.ShareNone
}

// replicasToReturn tells whether replicas of a workload were raised and not given back.
func (d *draft) replicasToReturn() bool {
	c := d.status.Capacity
	return c != nil && slices.ContainsFunc(c.Scaled, func(s v1alpha1.ScaledStatus) bool { return s.Kind != autoscalerKind })
}

// takenByGateways tells whether every route carries the share and the gateways have it.
func (d *draft) takenByGateways() bool {
	return d.routesCarry() && !slices.ContainsFunc(d.obs.Routes, func(r Route) bool { return !r.confirmed() })
}

// valueOf is what the object of a record has now, if it is there.
func (w *Workload) valueOf(s v1alpha1.ScaledStatus) (now int32, ok bool) {
	if s.Kind != autoscalerKind {
		return w.Replicas, s.Kind == w.Kind && s.Name == w.Name
	}
	if w.Autoscaler == nil || w.Autoscaler.Name != s.Name {
		return 0, false
	}
	return w.Autoscaler.Min, true
}

// returnScale asks for the value from before, and tells whether the record is still
// needed: it is as long as the object has what it was set to.
func (d *draft) returnScale(s v1alpha1.ScaledStatus) bool {
	w := d.obs.StableWorkload
	if s.Track == v1alpha1.TrackCanary {
		w = d.obs.CanaryWorkload
	}
	if w == nil {
		return false
	}
	if w.Problem != "" {
		// Later, then; a deletion does not wait for that.
		return !d.obs.Deleting
	}
	now, ok := w.valueOf(s)
	if !ok || now != s.To || now == s.From {
		// Given back, or set by somebody else since.
		if ok && now == s.From {
			d.event(false, v1alpha1.ReasonScaled, "%s %q is back at %d", s.Kind, s.Name, s.From)
		}
		return false
	}
	if s.Kind != autoscalerKind && w.Autoscaler != nil && s.From > 0 {
		// An autoscaler has taken over.
		return false
	}
	d.scales = append(d.scales, Scale{Track: s.Track, Kind: s.Kind, Name: s.Name, From: s.To, To: max(s.From, 0)})
	return true
}

// undersized tells of a stable that has fewer ready replicas than the traffic takes that
// comes back to it. It keeps nothing from coming back.
func (d *draft) undersized() {
	if d.obs.Spec.Canary == nil || d.obs.Spec.Canary.Capacity == v1alpha1.CapacityIgnore || !d.obs.bothWorkloads() || d.returning() || d.share == weights.ShareNone {
		return
	}
	if have, need := len(d.obs.StablePods), d.allTraffic(); have < int(need) {
		d.event(true, v1alpha1.ReasonStableUndersized, "all traffic goes back to %s, which has %d ready %s and was asked to have %d when it served everything: scale it", d.obs.StableWorkload, have, plural(have, "replica"), need)
	}
}

// String names the workload for people.
func (w *Workload) String() string {
	if w == nil {
		return "no workload"
	}
	return fmt.Sprintf("%s %q", w.Kind, w.Name)
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
