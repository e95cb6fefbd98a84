package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/live"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// sighting is what the API server knows of a rollout.
type sighting struct {
	rollout  *v1alpha1.WeightedRollout
	input    diagnose.Input
	warnings []string
}

func (s *sighting) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf(format, args...))
}

// look reads a rollout, the routes of its namespace, and its events. Without the right
// to the latter two it makes do, and says so.
func (c *cluster) look(ctx context.Context, name string) (*sighting, error) {
	wr, err := c.rollout(ctx, name)
	if err != nil {
		return nil, err
	}
	s := &sighting{rollout: wr}
	s.status()
	var routes []seenRoute
	for _, read := range []func(context.Context) ([]seenRoute, error){c.httpRoutes, c.grpcRoutes} {
		found, err := read(ctx)
		if err != nil && !errors.Is(err, errNoSuchKind) {
			s.warn("routes of the namespace %q cannot be read, so their weights are not looked at: %v", c.namespace, err)
		}
		routes = append(routes, found...)
	}
	s.routes(routes)
	events, err := c.events(ctx, wr)
	if err != nil {
		s.warn("the events of the namespace %q cannot be read, so changes of the share are not looked at: %v", c.namespace, err)
	}
	s.events(events)
	return s, nil
}

// status takes over what the rollout's status says.
func (s *sighting) status() {
	st := &s.rollout.Status
	in := &s.input
	in.Outcome = st.OutcomeReason
	in.NoWindows = "the requests of each window are in the live evidence only"
	in.Confirmed = st.Share.ConfirmedAt != nil
	if st.Share.Desired != nil {
		share, err := weights.ShareFrom(*st.Share.Desired)
		in.Desired, in.Begun = share, err == nil
	}
	if c := meta.FindStatusCondition(st.Conditions, v1alpha1.ConditionTrafficMatchesWeights); c != nil {
		in.Reported.Status, in.Reported.Message = string(c.Status), c.Message
	}
	if st.Share.Observed != nil && st.Share.ObservedFrom == v1alpha1.ShareFromRequests {
		share, err := weights.ShareFrom(*st.Share.Observed)
		in.Reported.Observed, in.Reported.FromRequests = share, err == nil
	}
	in.Traffic.Why = in.Reported.Message
	if in.Traffic.Why == "" {
		in.Traffic.Why = "the status says nothing of the requests"
	}
}

// seenRoute is a route, and which of its rules keep clients on a backend.
type seenRoute struct {
	*route.Object
	sticky []bool
}

func (c *cluster) httpRoutes(ctx context.Context) (found []seenRoute, err error) {
	var list gatewayv1.HTTPRouteList
	err = c.read(ctx, gatewayv1.GroupVersion.String(), "httproutes", "", "", &list)
	for i := range list.Items {
		r := seenRoute{Object: route.FromHTTPRoute(&list.Items[i])}
		for _, rule := range list.Items[i].Spec.Rules {
			r.sticky = append(r.sticky, rule.SessionPersistence != nil)
		}
		found = append(found, r)
	}
	return found, err
}

func (c *cluster) grpcRoutes(ctx context.Context) (found []seenRoute, err error) {
	var list gatewayv1.GRPCRouteList
	err = c.read(ctx, gatewayv1.GroupVersion.String(), "grpcroutes", "", "", &list)
	for i := range list.Items {
		r := seenRoute{Object: route.FromGRPCRoute(&list.Items[i])}
		for _, rule := range list.Items[i].Spec.Rules {
			r.sticky = append(r.sticky, rule.SessionPersistence != nil)
		}
		found = append(found, r)
	}
	return found, err
}

// routes finds the rules that the rollout manages, and others with the same Services.
func (s *sighting) routes(routes []seenRoute) {
	spec := &s.rollout.Spec
	if spec.Stable == nil || spec.Canary == nil {
		return
	}
	pair := route.Pair{Stable: backendOf(s.rollout.Namespace, &spec.Stable.Track), Canary: backendOf(s.rollout.Namespace, &spec.Canary.Track)}
	for _, r := range routes {
		managed := map[int]bool{}
		at := slices.IndexFunc(spec.Routes, func(ref v1alpha1.RouteReference) bool {
			return ref.Name == r.Name && cmp.Or(ref.Kind, v1alpha1.HTTPRouteKind) == r.Kind
		})
		if at >= 0 {
			found := route.Inspect(r.Object, spec.Routes[at].RuleNames, pair)
			for _, m := range found.Rules {
				managed[m.Index] = true
				stable, canary := m.Target(s.input.Desired)
				s.input.Rules = append(s.input.Rules, diagnose.Rule{
					Where: ruleName(r.Object, m.Index), Stable: int64(m.StableWeight), Canary: int64(m.CanaryWeight),
					AsDesired: m.StableWeight == stable && m.CanaryWeight == canary, Sticky: r.sticky[m.Index],
				})
			}
		}
		for i, rule := range r.Rules {
			if managed[i] {
				continue
			}
			stable, canary := weightIn(rule, r.Namespace, pair.Stable), weightIn(rule, r.Namespace, pair.Canary)
			if stable+canary > 0 {
				s.input.Elsewhere = append(s.input.Elsewhere, diagnose.Elsewhere{Where: ruleName(r.Object, i), Stable: stable, Canary: canary})
			}
		}
	}
}

func backendOf(namespace string, t *v1alpha1.Track) route.Backend {
	return route.Backend{Namespace: cmp.Or(t.Namespace, namespace), Service: t.Service, Port: t.Port}
}

func ruleName(r *route.Object, index int) string {
	if name := r.Rules[index].Name; name != "" {
		return fmt.Sprintf("%s, rule %q", r, name)
	}
	return fmt.Sprintf("%s, rule %d", r, index)
}

// weightIn is the weight that a rule gives a backend: 1 where it is left out, by the
// Gateway API's definition.
func weightIn(rule route.Rule, namespace string, want route.Backend) (sum int64) {
	for _, ref := range rule.Backends {
		group, kind, weight := gatewayv1.Group(""), gatewayv1.Kind("Service"), int32(1)
		is := route.Backend{Namespace: namespace, Service: string(ref.Name)}
		if ref.Group != nil {
			group = *ref.Group
		}
		if ref.Kind != nil {
			kind = *ref.Kind
		}
		if ref.Namespace != nil {
			is.Namespace = cmp.Or(string(*ref.Namespace), namespace)
		}
		if ref.Port != nil {
			is.Port = *ref.Port
		}
		if ref.Weight != nil {
			weight = *ref.Weight
		}
		if group == "" && kind == "Service" && is == want {
			sum += int64(max(weight, 0))
		}
	}
	return sum
}

// events takes the changes of the share from the controller's events.
func (s *sighting) events(events []eventsv1.Event) {
	before := weights.ShareNone
	for _, e := range events {
		if c, ok := diagnose.ChangeIn(happened(e), e.Reason, e.Note, before); ok {
			s.input.Changes = append(s.input.Changes, c)
			before = c.To
		}
	}
}

// noWindows says why live evidence has no window to look at.
func noWindows(d *live.Document) string {
	if d.Traffic != nil && d.Traffic.NotCounted != "" {
		return d.Traffic.NotCounted
	}
	return "no window has been counted at this share yet"
}

// take takes over the live evidence: the requests of each track, and those of every
// window that lies beside the one before.
func (s *sighting) take(d *live.Document) {
	in := &s.input
	if s.rollout.Status.Outcome == v1alpha1.OutcomeInProgress {
		// Otherwise the evidence is about nothing, and the status knows.
		in.Confirmed = in.Confirmed && d.ConfirmedAt != nil
	}
	in.NoWindows = noWindows(d)
	for _, e := range d.Evaluations {
		length := e.End.Sub(e.Start)
		if length < time.Millisecond || e.End.UnixMilli()%length.Milliseconds() != 0 || e.Stable == nil || e.Canary == nil {
			continue
		}
		in.Windows = append(in.Windows, diagnose.Window{Start: e.Start, End: e.End, Stable: e.Stable.Requests, Canary: e.Canary.Requests})
	}
	switch t := d.Traffic; {
	case t == nil:
		in.Traffic = diagnose.Traffic{Why: cmp.Or(in.Reported.Message, "the controller does not tell how many requests there were")}
	case t.NotCounted != "":
		in.Traffic = diagnose.Traffic{Why: t.NotCounted}
	default:
		in.Traffic = diagnose.Traffic{Counted: true, Canary: t.Canary, Stable: t.Stable}
	}
}
