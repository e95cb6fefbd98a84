package rollout

import (
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// warmup returns the limits of a cold canary.
func (d *draft) warmup() weights.Warmup {
	if w := d.status.Warmup; w != nil && w.Reason == v1alpha1.ColdBreak {
		return d.plan.warmup.AfterBreak()
	}
	return d.plan.warmup
}

// warm ends the warm-up of a canary that has come as far as its stage goes, and the
// hold of one that has recovered from a break.
func (d *draft) warm(present, target weights.Share) {
	w := d.status.Warmup
	if w == nil || present == 0 || d.returning() {
		return
	}
	switch {
	case present >= target:
		d.status.Warmup = nil
	case w.Reason == v1alpha1.ColdBreak && d.obs.Verdict.Steady:
		w.Soaked, w.Recovered = true, true
	}
}

// pace returns how long the present share is held at least.
func (d *draft) pace(present weights.Share) time.Duration {
	w := d.status.Warmup
	switch {
	case w == nil || d.returning():
	case present == 0 && w.Reason == v1alpha1.ColdNotResolved:
		return max(d.plan.interval, d.plan.unhealthyFor)
	case present > 0 && !w.Soaked:
		return max(d.plan.interval, d.plan.warmupSoak)
	}
	return d.plan.interval
}

// goCold says why the canary is cold now. It begins a warm-up, with time that is not
// compared with stable; but one that was interrupted has only what is left of its time,
// and a canary that was not compared since its last one has none: otherwise one whose pods
// are replaced again and again would never be compared.
func (d *draft) goCold(reason v1alpha1.ColdReason) {
	w := &v1alpha1.WarmupStatus{Reason: reason}
	switch was := d.status.Warmup; {
	case was != nil:
		w.HeldSince, w.HeldFor = was.HeldSince, was.HeldFor
	case !d.comparedLately():
		w.HeldFor = d.plan.warmupSoak.String()
	}
	d.status.Warmup = w
}

// comparedLately reports whether the canary was compared with stable after the warm-up that
// it may have had last, or whether it had all traffic, so that it could not be.
func (d *draft) comparedLately() bool {
	through := Compared(&d.status).Through
	if k := d.obs.Verdict.Compared.Through; k.After(through) {
		through = k
	}
	return d.judged == weights.ShareAll || through.After(d.now.Add(-d.plan.warmupSoak))
}

// holdBegins and holdEnds keep account of how long a cold canary has had its traffic.
func (d *draft) holdBegins() {
	if w := d.status.Warmup; w != nil && w.HeldSince == nil && d.share > 0 && !d.returning() {
		w.HeldSince = micro(d.now)
	}
}

func (d *draft) holdEnds() {
	if w := d.status.Warmup; w != nil && w.HeldSince != nil {
		w.HeldFor = (held(w) + max(d.now.Sub(w.HeldSince.Time), 0)).Truncate(time.Second).String()
		w.HeldSince = nil
	}
}

// warmedTo keeps the record of a cold canary that is raised. A first share that is
// the stage's whole weight needs none: the stage's soak watches it. Nor is there one
// where the spec asks for the whole at once, and the ramp alone makes it less.
func (d *draft) warmedTo(from, to weights.Share) {
	if b := d.status.Breaker; b != nil {
		b.OpenedAt = nil
	}
	switch w := d.status.Warmup; {
	case d.returning():
	case from > 0:
		if w != nil {
			w.Soaked = true
		}
	case w != nil && w.Reason == v1alpha1.ColdNotResolved:
		// It is known that the gateway resolves it once this is confirmed.
		w.Soaked, w.Recovered = false, false
	case to >= d.target().share || d.warmup().Initial >= weights.ShareAll:
		d.status.Warmup = nil
	case w == nil:
		// Whatever took the share to 0, it is cold.
		d.status.Warmup = &v1alpha1.WarmupStatus{Reason: v1alpha1.ColdStarted}
	default:
		w.Soaked, w.Recovered = false, false
	}
}

// resolvedAgain ends what was kept of a canary that could not be resolved, where the spec
// asks for no warm-up: its share is confirmed.
func (d *draft) resolvedAgain() {
	w := d.status.Warmup
	if w != nil && w.Reason == v1alpha1.ColdNotResolved && d.share > 0 && d.planErr == nil && d.plan.warmup.Initial >= weights.ShareAll {
		d.status.Warmup = nil
	}
}
