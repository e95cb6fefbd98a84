package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// traefikBounds are the upper bounds of Traefik's buckets of response times, in rising
// order, unless metrics.prometheus.buckets sets others. Source: Traefik's documentation of
// its metrics.
var traefikBounds = []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, 1200 * time.Millisecond, 5 * time.Second}

// warnOfBuckets looks for limits of the response time that Traefik's histogram cannot
// tell exactly.
func (p *plan) warnOfBuckets(add adder) {
	l := p.health.Latency
	if p.health.Disabled || p.health.Preset != v1alpha1.PresetTraefik || l == nil {
		return
	}
	const unless = "unless the gateway's buckets were changed (metrics.prometheus.buckets)"
	if low, high := between(l.Max); low != l.Max {
		what, cure := fmt.Sprintf("so the next lower one, %s, counts", short(low)), choice(low, high)
		if low == 0 {
			what, cure = "and below all of them, so the verdict stays Unknown and nothing rises", "raise it to "+short(high)
		}
		add("spec.health.latency.max", "%s is no bound of Traefik's buckets (%s), %s: %s, %s", short(l.Max), boundsText(), what, cure, unless)
	}
	if l.Target == 0 {
		return
	}
	if low, high := between(l.Target); high == 0 {
		add("spec.health.latency.target", "no response time is read as longer than %s, the last bound of Traefik's buckets (%s), so the canary is never found slower than %s: set a lower bound, %s", short(low), boundsText(), short(l.Target), unless)
	} else if low != l.Target {
		below := high
		if low > 0 && high > l.Max {
			below = 0 // a target is at most max
		}
		add("spec.health.latency.target", "%s is no bound of Traefik's buckets (%s), so whether the response time is above it is estimated between the bounds beside it, %s and %s: %s, %s", short(l.Target), boundsText(), short(low), short(high), choice(low, below), unless)
	}
}

// between returns the last of Traefik's bounds up to d and the first one above it; 0
// where there is none.
func between(d time.Duration) (low, high time.Duration) {
	for _, bound := range traefikBounds {
		if bound > d {
			return low, bound
		}
		low = bound
	}
	return low, 0
}

// choice names the bounds to set instead; 0 is none.
func choice(low, high time.Duration) string {
	var texts []string
	for _, bound := range []time.Duration{low, high} {
		if bound > 0 {
			texts = append(texts, short(bound))
		}
	}
	return "set " + strings.Join(texts, " or ")
}

func boundsText() string {
	texts := make([]string, len(traefikBounds))
	for i, bound := range traefikBounds {
		texts[i] = short(bound)
	}
	return strings.Join(texts, ", ")
}
