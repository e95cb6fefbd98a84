package rollout

import (
	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Workload is what runs the pods of a track.
type Workload struct {
	Kind, Name string
	// Problem says why it cannot be read; all that follows is then empty.
	Problem string
	// Generation is its metadata.generation, where it has a pod template that is read.
	Generation int64
	// Replicas is how many it is asked to have.
	Replicas int32
	// Revision stands for its pod template; empty for a kind of which it is not read.
	Revision string
	// Unready says why its template is not rolled out; empty if it is.
	Unready string
	// Outdated says that pods of another template are left, or may be; empty if none is.
	Outdated string
	// Autoscaler is what else sets its replicas, or nil.
	Autoscaler *Autoscaler
	// WriteError says why the last write to it or its autoscaler was refused, or is empty.
	WriteError string
}

// Autoscaler is a HorizontalPodAutoscaler.
type Autoscaler struct {
	Name     string
	Min, Max int32
}

// Scale asks for the replicas of a workload, or the minReplicas of an autoscaler.
type Scale struct {
	Track v1alpha1.TrackName
	// Kind is the workload's, or HorizontalPodAutoscaler.
	Kind, Name string
	// From is what it must have at the time of the write, and To what it gets.
	From, To int32
}

// autoscalerKind is the kind of an autoscaler.
const autoscalerKind = "HorizontalPodAutoscaler"

// revision is the version that the canary is to run: the spec's, or that of its
// workload's pod template. It is empty as long as that cannot be read.
func (o Observation) revision() string {
	if o.Spec.Revision != "" || o.CanaryWorkload == nil {
		return o.Spec.Revision
	}
	return o.CanaryWorkload.Revision
}

// bothWorkloads tells whether both tracks name a workload, and both can be read.
func (o Observation) bothWorkloads() bool {
	return o.StableWorkload != nil && o.CanaryWorkload != nil && o.StableWorkload.Problem == "" && o.CanaryWorkload.Problem == ""
}

// unreadable returns a workload that is needed and cannot be read, or nil. While the
// traffic returns to stable the canary's is not needed any more.
func (d *draft) unreadable() *Workload {
	needed := []*Workload{d.obs.StableWorkload, d.obs.CanaryWorkload}
	if d.returning() {
		needed = needed[:1]
	}
	for _, w := range needed {
		if w != nil && w.Problem != "" {
			return w
		}
	}
	return nil
}

// noteStableRevision takes over what the spec says that stable runs, when it says
// something new. What a rollout has left there since counts until then.
func (d *draft) noteStableRevision() {
	stated := ""
	if t := d.obs.Spec.Stable; t != nil {
		stated = t.Revision
	}
	if stated == d.status.StatedStableRevision {
		return
	}
	d.status.StatedStableRevision = stated
	if stated != "" {
		d.status.StableRevision = stated
	}
}

// noteStableTemplate keeps what is known of stable's revision in step with what is seen, once
// an attempt has ended since stable ran it: where the revision follows from a pod template,
// and stable was seen with it. That of a return which a person began by finish was not.
func (d *draft) noteStableTemplate() {
	seen := d.status.Outcome == v1alpha1.OutcomeSuperseded ||
		d.status.Outcome == v1alpha1.OutcomeCompleted && d.status.StableUpdate != nil && d.status.StableUpdate.Seen
	if !seen || d.obs.Spec.Revision != "" || !d.obs.bothWorkloads() || d.obs.StableWorkload.Revision == "" || d.obs.revision() != d.status.Revision {
		return
	}
	switch {
	case d.obs.SameTemplate:
		d.status.StableRevision = d.status.Revision
	case d.stableStillRuns():
		d.status.StableRevision = ""
	}
}

// stableRuns tells whether stable runs the given revision, which the spec names. That
// the two workloads have the same template counts for a revision that comes from it:
// of one that a person has named the canary's workload may not be there yet.
func (d *draft) stableRuns(revision string) bool {
	if d.obs.Spec.Revision == "" && d.obs.bothWorkloads() && d.obs.StableWorkload.Revision != "" {
		return d.obs.SameTemplate
	}
	return revision == d.status.StableRevision
}
