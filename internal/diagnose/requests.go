package diagnose

import (
	"fmt"

	"github.com/weightedrollout/weightedrollout/internal/traffic"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// Requests asks whether each backend gets the requests that its weight stands for: its
// requests, divided by its weight, are then the same for both.
func Requests(in Input) Finding {
	f := &Finding{Question: "Does each backend get the requests that its weight stands for?"}
	for _, r := range in.Rules {
		f.number("weights", "stable %d, canary %d in %s", r.Stable, r.Canary, r.Where)
	}
	for _, e := range in.Elsewhere {
		f.number("elsewhere", "stable %d, canary %d in %s, which the rollout does not manage", e.Stable, e.Canary, e.Where)
	}
	switch {
	case !in.Begun:
		return f.concludes(CannotTell, "the rollout has no share yet")
	case len(in.Rules) == 0:
		return f.concludes(CannotTell, "no rule of the routes holds both backends, or the routes cannot be read")
	case !in.Confirmed:
		return f.concludes(CannotTell, "the gateways have not confirmed the share of %s yet", in.Desired)
	}
	for _, r := range in.Rules {
		if !r.AsDesired {
			f.remedy("another writer has set the weights; a tool that applies the route without weights writes 1 and 1",
				"let that tool leave backendRefs[].weight alone; the controller sets the weights anew by itself")
			return f.concludes(Problem, "the weights in %s are not those of the share, %s", r.Where, in.Desired)
		}
	}
	if !in.Traffic.Counted {
		return in.reported(f)
	}
	return in.judge(f)
}

// judge compares the requests with the weights.
func (in Input) judge(f *Finding) Finding {
	t, share := in.Traffic, in.carried()
	stable, canary := in.perWeight(share)
	f.number("stable", "%s / %s = %s", many(t.Stable, "request"), stable.name, stable.quotient(t.Stable))
	f.number("canary", "%s / %s = %s", many(t.Canary, "request"), canary.name, canary.quotient(t.Canary))
	found := traffic.Judge(t.Canary, t.Stable, share)
	f.number("canary's part", "%s of the requests; %s by weight, and so many requests allow %s to %s", found.Observed, share, found.Low, found.High)
	switch found.State {
	case traffic.Matches:
		return f.concludes(OK, "the requests are divided as the weights say")
	case traffic.TooFew:
		return f.concludes(CannotTell, "there are too few requests: to tell a share of %s from another takes about %d at the same weights", share, traffic.Needed(share))
	case traffic.Differs:
	}
	in.blame(f, found.Observed)
	return f.concludes(Problem, "the canary has %s of the requests, and %s of the weight: chance does not explain that", found.Observed, share)
}

// reported repeats what the status says, where the requests are not at hand.
func (in Input) reported(f *Finding) Finding {
	r := in.Reported
	if r.FromRequests {
		f.number("canary's part", "%s of the requests, by the status; %s by weight", r.Observed, in.carried())
	}
	switch r.Status {
	case "True":
		return f.concludes(OK, "the status says so: %s", r.Message)
	case "False":
		in.blame(f, r.Observed)
		return f.concludes(Problem, "the status says no: %s", r.Message)
	}
	why := in.Traffic.Why
	if why == "" {
		why = r.Message
	}
	if why == "" {
		why = "the requests are not known"
	}
	return f.concludes(CannotTell, "%s", why)
}

// blame lists what can keep traffic from following the weights.
func (in Input) blame(f *Finding, observed weights.Share) {
	for _, e := range in.Elsewhere {
		f.remedy(fmt.Sprintf("%s sends requests to the same Services, by weights of its own", e.Where),
			"its requests cannot be told from the rollout's: give them a Service of their own, or give the rule to the rollout (spec.routes, ruleNames)")
	}
	for _, r := range in.Rules {
		if r.Sticky {
			f.remedy(fmt.Sprintf("%s has session persistence: a client stays with the backend that it had before", r.Where),
				"remove sessionPersistence while the rollout runs, or wait until the sessions have ended")
		}
	}
	switch {
	case observed > weights.ShareAll/2-3*weights.SharePoint && observed < weights.ShareAll/2+3*weights.SharePoint:
		f.remedy("each track gets one request in two, which is what a gateway does that ignores the weights",
			"look up whether the gateway supports weights in backendRefs, and whether it is the one that the route's status names")
	case observed == weights.ShareNone || observed == weights.ShareAll:
		f.remedy("one track gets every request: the gateway ignores the weights, or another route of the same host takes the traffic",
			"look up whether the gateway supports weights in backendRefs; look for routes with the same hostname and a more specific match")
	default:
		f.remedy("the gateway does not keep to the weights, or another of its replicas still has older ones",
			"look at the gateway's own configuration and log")
	}
	f.remedy("requests that did not come by these rules are counted for the same Services: of a route in another namespace, of a mesh, of another gateway",
		"send them to a Service of their own")
	f.remedy("sessions stick to a backend by a setting of the gateway's own: a cookie, or the client's address",
		"switch that off for these Services while the rollout runs")
}

// carried is the share that the weights stand for: the desired one, but for what a small
// sum of weights rounds away.
func (in Input) carried() weights.Share {
	r := in.Rules[0]
	share, _ := weights.Part(r.Canary, r.Stable+r.Canary)
	for _, r := range in.Rules[1:] {
		if other, _ := weights.Part(r.Canary, r.Stable+r.Canary); other != share {
			return in.Desired
		}
	}
	return share
}

// divisor is what requests are divided by.
type divisor struct {
	value float64
	name  string
}

func (d divisor) quotient(requests int64) string {
	if d.value == 0 {
		return "no request is due"
	}
	return short(float64(requests)/d.value) + " each"
}

// perWeight returns the weights of the two tracks, or where the rules have different
// ones, their percentages.
func (in Input) perWeight(share weights.Share) (stable, canary divisor) {
	first, name, s, c := in.Rules[0], "weight", float64(in.Rules[0].Stable), float64(in.Rules[0].Canary)
	for _, r := range in.Rules[1:] {
		if r.Stable != first.Stable || r.Canary != first.Canary {
			name, s, c = "percent", float64(weights.ShareAll-share)/100, float64(share)/100
		}
	}
	return divisor{s, fmt.Sprintf("%s %s", name, short(s))}, divisor{c, fmt.Sprintf("%s %s", name, short(c))}
}
