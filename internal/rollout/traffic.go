package rollout

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/traffic"
)

// reportTraffic says whether the requests are divided as the weights say, and what share
// they show. The numbers are a snapshot: they are written when what they say changes, or
// with what else is written.
func (d *draft) reportTraffic() {
	was := meta.FindStatusCondition(d.status.Conditions, v1alpha1.ConditionTrafficMatchesWeights)
	status, reason, message := d.trafficFinding()
	told := status != metav1.ConditionUnknown
	if was != nil && d.notWorthAWrite(was.Status, status) {
		return
	}
	if was != nil && !told && d.stillTold(*was) {
		d.condition(v1alpha1.ConditionTrafficMatchesWeights, was.Status, was.Reason, was.Message)
		return
	}
	if was != nil && was.Status == status && d.sameNumbers(told) {
		d.status.Share.Observed, d.status.Share.ObservedFrom = d.obs.Status.Share.Observed, v1alpha1.ShareFromRequests
		d.condition(v1alpha1.ConditionTrafficMatchesWeights, was.Status, was.Reason, was.Message)
		return
	}
	if told {
		p := percent(d.obs.Verdict.Traffic.Finding.Observed)
		d.status.Share.Observed, d.status.Share.ObservedFrom = &p, v1alpha1.ShareFromRequests
	}
	if status == metav1.ConditionFalse && (was == nil || was.Status != status) {
		d.event(true, v1alpha1.ReasonTrafficDiffers, "%s", message)
	}
	d.condition(v1alpha1.ConditionTrafficMatchesWeights, status, reason, message)
}

// sameNumbers tells whether what was counted before says the same, in other numbers.
func (d *draft) sameNumbers(told bool) bool {
	return told && !d.moved && d.obs.Status != nil && d.obs.Status.Share.ObservedFrom == v1alpha1.ShareFromRequests
}

// stillTold tells whether what was found at an earlier share of the attempt stands until
// there are enough requests at the present one.
func (d *draft) stillTold(was metav1.Condition) bool {
	t := d.obs.Verdict.Traffic
	early := t.Counted || t.NotCounted == "" || !d.confirmed() || d.obs.Verdict.Reason == v1alpha1.ReasonAwaitingWindow
	return was.Status != metav1.ConditionUnknown && early && d.known && d.open() && !d.fresh && d.obs.Owner == "" && d.obs.Crossing == ""
}

// notWorthAWrite tells whether all else is as it was, and the traffic no news: why it
// cannot be told, or, in the middle of a ramp, that it is well.
func (d *draft) notWorthAWrite(was, is metav1.ConditionStatus) bool {
	news := is == metav1.ConditionFalse || was == metav1.ConditionFalse || was == metav1.ConditionTrue || is == metav1.ConditionTrue && !d.inMidRamp()
	if d.obs.Status == nil || is != was && news {
		return false
	}
	return equality.Semantic.DeepEqual(d.status, *d.obs.Status)
}

// trafficFinding compares the requests at the present share with the weights.
func (d *draft) trafficFinding() (status metav1.ConditionStatus, reason, message string) {
	unknown := func(format string, args ...any) (metav1.ConditionStatus, string, string) {
		return metav1.ConditionUnknown, v1alpha1.ReasonTrafficNotMeasured, fmt.Sprintf(format, args...)
	}
	t := d.obs.Verdict.Traffic
	f := t.Finding
	switch {
	case !d.known || !d.open() || d.obs.Owner != "":
		return unknown("no rollout is under way")
	case d.fresh || d.moved || !d.confirmed() || !d.routesCarry():
		return unknown("the share has just been changed")
	case d.obs.Crossing != "":
		return unknown("%s sends to one of the two Services as well, and a gateway counts by Service: its requests cannot be told from the rollout's", d.obs.Crossing)
	case !t.Counted && t.NotCounted == "":
		return unknown("nothing has been counted yet")
	case !t.Counted:
		return unknown("%s", t.NotCounted)
	case f.State == "":
		return unknown("the weights give the canary nothing")
	case f.State == traffic.Matches:
		return metav1.ConditionTrue, v1alpha1.ReasonTrafficMatches,
			fmt.Sprintf("the canary had %s percent of %d requests, and the weights give it %s", percent(f.Observed), t.Canary+t.Stable, percent(d.share))
	case f.State == traffic.Differs:
		return metav1.ConditionFalse, v1alpha1.ReasonTrafficDiffers,
			fmt.Sprintf("the canary had %s percent of %d requests, and the weights give it %s: chance allows from %s to %s. Does the gateway support weights, is there another route for these requests, do sessions stick to a backend?",
				percent(f.Observed), t.Canary+t.Stable, percent(d.share), percent(f.Low), percent(f.High))
	}
	return unknown("about %d requests of both versions are needed to tell, at this share", traffic.Needed(d.share))
}
