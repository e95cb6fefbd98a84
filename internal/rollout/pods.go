package rollout

import (
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

const (
	// maxWarmPods is the number of pods that status keeps.
	maxWarmPods = 16
	// podName is how many characters of a pod's uid are kept, and uidLength is how long
	// a uid is: what is shorter is a name or an address, and kept as it is.
	podName, uidLength = 8, 36
)

// podsReplaced lowers the share of a canary of which no pod is left that has had its
// traffic: caches are cold again, as at its first traffic.
func podsReplaced(d *draft) bool {
	if d.planErr != nil || d.status.Outcome != v1alpha1.OutcomeInProgress || d.share == 0 || len(d.obs.CanaryPods) == 0 || d.status.Stage == nil {
		return false
	}
	if len(d.status.WarmPods) == 0 || slices.ContainsFunc(shorten(d.obs.CanaryPods), func(p string) bool { return slices.Contains(d.status.WarmPods, p) }) {
		return false
	}
	if i := d.status.Stage.Index; i < 0 || int(i) >= len(d.plan.stages) || d.plan.warmup.Initial >= weights.ShareAll {
		return false
	}
	from, first := d.share, d.plan.warmup.First(d.target().share, d.plan.limits)
	if first < from && !d.setShare(first) {
		return true
	}
	// At a share that is no higher, too, everything is measured anew.
	d.status.Share.ChangedAt = micro(d.now)
	d.unconfirm()
	d.moved = true
	d.goCold(v1alpha1.ColdPodsReplaced)
	d.status.WarmPods, d.status.WarmPodsDueAt = warmPods(d.obs.CanaryPods), nil
	d.writes = WriteAll
	d.event(true, v1alpha1.ReasonPodsReplaced, "every pod of the canary was replaced, so that it is cold: its share goes from %s to %s percent", percent(from), percent(d.share))
	d.waitForRoutes()
	return true
}

// noteWarmPods records the pods that have the confirmed share.
func (d *draft) noteWarmPods() {
	d.status.WarmPods, d.status.WarmPodsDueAt = nil, nil
	if d.share > 0 && d.status.Outcome == v1alpha1.OutcomeInProgress {
		d.status.WarmPods = warmPods(d.obs.CanaryPods)
	}
}

// keepWarmPods keeps the record of pods that have had traffic of use. Once half of them
// are gone, or as many again have joined, it is brought up to date after the time of a
// warm-up, if one of them is left by then: what has served beside it for so long is warm.
func (d *draft) keepWarmPods() {
	was := d.status.WarmPods
	if !d.known || d.planErr != nil || d.share == 0 || d.status.Outcome != v1alpha1.OutcomeInProgress || len(was) == 0 {
		d.status.WarmPodsDueAt = nil
		return
	}
	now := shorten(d.obs.CanaryPods)
	still := slices.DeleteFunc(slices.Clone(now), func(p string) bool { return !slices.Contains(was, p) })
	switch due := d.status.WarmPodsDueAt; {
	case len(still) == 0:
	case 2*len(still) > len(was) && min(len(now), maxWarmPods) < 2*len(was):
		d.status.WarmPodsDueAt = nil
	case due == nil:
		d.status.WarmPodsDueAt = micro(d.now.Add(d.plan.warmupSoak))
		d.wakeAt(d.status.WarmPodsDueAt.Time)
	case d.now.Before(due.Time):
		d.wakeAt(due.Time)
	default:
		d.status.WarmPods, d.status.WarmPodsDueAt = warmPods(d.obs.CanaryPods), nil
	}
}

func warmPods(uids []string) []string {
	names := shorten(uids)
	if len(names) > maxWarmPods {
		names = names[:maxWarmPods]
	}
	return names
}

// shorten cuts uids, sorted, to what status keeps of them.
func shorten(uids []string) []string {
	var names []string
	for _, uid := range uids {
		if len(uid) == uidLength {
			uid = uid[:podName]
		}
		names = append(names, clipTo(uid, 63))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tellSharedPods warns of Services that pick the same pods, when the first traffic goes
// to the canary.
func (d *draft) tellSharedPods() {
	if slices.ContainsFunc(d.obs.CanaryPods, func(p string) bool { return slices.Contains(d.obs.StablePods, p) }) {
		d.event(true, v1alpha1.ReasonSharedPods, "the Services %q and %q pick the same pods, so that a share of the one is traffic for the other: correct their selectors", d.stableService(), d.canaryService())
	}
}
