package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// namespace is where everything lives.
const namespace = "default"

// The backends of a route in the order in which pickers know them. The canary is the
// last one, as the picker with hash buckets wants it.
const (
	stableBackend = iota
	canaryBackend
)

// served is a route of the rollout, as the API server stores it and as the gateway
// serves it.
type served struct {
	kind   v1alpha1.RouteKind
	name   string
	stored *gatewayv1.HTTPRoute
	// due is when the gateway will have taken the stored version; pending says that it
	// has not yet.
	due     time.Duration
	pending bool
	// writer is who else wrote it last.
	writer string

	// wire are the weights that the gateway serves.
	wire RouteWeights
	// picker chooses by them; nil in an exact simulation.
	picker pick.Picker
	// rest is the part of a request that is left over from the time before.
	rest float64
}

// newServed returns a route with the pair at 100/0, which the gateway has taken. It has
// a rule for each one that the spec names, or one without a name.
func newServed(spec *v1alpha1.WeightedRolloutSpec, ref v1alpha1.RouteReference) *served {
	hr := &gatewayv1.HTTPRoute{}
	hr.Namespace, hr.Name = namespace, ref.Name
	hr.UID, hr.Generation, hr.ResourceVersion = types.UID("route-"+ref.Name), 1, "1"
	hr.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "gateway"}}
	names := ref.RuleNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		stable, canary := int32(100), int32(0)
		rule := gatewayv1.HTTPRouteRule{BackendRefs: []gatewayv1.HTTPBackendRef{
			backendRef(&spec.Stable.Track, &stable), backendRef(&spec.Canary.Track, &canary),
		}}
		if name != "" {
			section := gatewayv1.SectionName(name)
			rule.Name = &section
		}
		hr.Spec.Rules = append(hr.Spec.Rules, rule)
	}
	s := &served{kind: cmp.Or(ref.Kind, v1alpha1.HTTPRouteKind), name: ref.Name, stored: hr}
	s.report()
	return s
}

func backendRef(t *v1alpha1.Track, weight *int32) gatewayv1.HTTPBackendRef {
	port := t.Port
	ref := gatewayv1.HTTPBackendRef{}
	ref.Name, ref.Port, ref.Weight = gatewayv1.ObjectName(t.Service), &port, weight
	if t.Namespace != "" {
		in := gatewayv1.Namespace(t.Namespace)
		ref.Namespace = &in
	}
	return ref
}

// show is the stored route as one of its kind. What is simulated of a route is the same
// for every kind, so all are stored as HTTPRoutes.
func (s *served) show() *route.Object {
	o := route.FromHTTPRoute(s.stored)
	o.Kind = s.kind
	return o
}

// report lets the gateway say that it has taken the stored version.
func (s *served) report() {
	hr := s.stored.DeepCopy()
	condition := func(kind gatewayv1.RouteConditionType) metav1.Condition {
		return metav1.Condition{Type: string(kind), Status: metav1.ConditionTrue, Reason: string(kind), ObservedGeneration: hr.Generation}
	}
	hr.Status.Parents = []gatewayv1.RouteParentStatus{{
		ParentRef: hr.Spec.ParentRefs[0], ControllerName: "example.com/gateway",
		Conditions: []metav1.Condition{condition(gatewayv1.RouteConditionAccepted), condition(gatewayv1.RouteConditionResolvedRefs)},
	}}
	s.stored, s.pending, s.wire = hr, false, s.weights(hr)
	s.nextVersion()
}

// weights reads the pair's weights.
func (s *served) weights(hr *gatewayv1.HTTPRoute) RouteWeights {
	refs := hr.Spec.Rules[0].BackendRefs
	return RouteWeights{Route: s.name, Stable: *refs[stableBackend].Weight, Canary: *refs[canaryBackend].Weight}
}

// nextVersion gives the stored route another resourceVersion, as every write does.
func (s *served) nextVersion() {
	version, _ := strconv.ParseInt(s.stored.ResourceVersion, 10, 64)
	s.stored.ResourceVersion = strconv.FormatInt(version+1, 10)
}

// store keeps a new version, which the gateway has yet to take.
func (s *served) store(hr *gatewayv1.HTTPRoute, due time.Duration) {
	s.stored, s.due, s.pending = hr, due, true
	hr.Generation++
	s.nextVersion()
}

// edit changes the weights of every rule by another hand than the controller's.
func (s *served) edit(stable, canary int32, writer string, due time.Duration) {
	hr := s.stored.DeepCopy()
	for i := range hr.Spec.Rules {
		refs := hr.Spec.Rules[i].BackendRefs
		*refs[stableBackend].Weight, *refs[canaryBackend].Weight = stable, canary
	}
	s.writer = writer
	s.store(hr, due)
}

// patched returns the route as the API server would store it after a JSON patch.
func patched(hr *gatewayv1.HTTPRoute, patch []byte) (*gatewayv1.HTTPRoute, error) {
	before, err := json.Marshal(hr)
	if err != nil {
		return nil, fmt.Errorf("encode route %s: %w", hr.Name, err)
	}
	steps, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, fmt.Errorf("decode the patch of route %s: %w", hr.Name, err)
	}
	text, err := steps.Apply(before)
	if err != nil {
		return nil, fmt.Errorf("apply the patch to route %s: %w", hr.Name, err)
	}
	after := &gatewayv1.HTTPRoute{}
	if err := json.Unmarshal(text, after); err != nil {
		return nil, fmt.Errorf("decode the patched route %s: %w", hr.Name, err)
	}
	return after, nil
}

// pickers makes the pickers of a run.
type pickers struct {
	name   string
	salt   string
	source rand.Source
}

// updater is a picker that can take new weights without losing its place.
type updater interface {
	Update(backends []pick.Backend) error
}

// backends lists a route's backends for a picker.
func backends(w RouteWeights) []pick.Backend {
	return []pick.Backend{{Name: "stable", Weight: w.Stable}, {Name: "canary", Weight: w.Canary}}
}

// configure gives a route's picker the weights that the gateway now serves. A picker
// that cannot be updated is made anew, as a gateway does that reloads its
// configuration. An exact simulation has no pickers (nil) and needs none.
func (p *pickers) configure(s *served) error {
	if p == nil {
		return nil
	}
	if u, ok := s.picker.(updater); ok {
		return u.Update(backends(s.wire))
	}
	made, err := pick.New(p.name, backends(s.wire), pick.Options{Source: p.source, Salt: p.salt})
	if err != nil {
		return err
	}
	s.picker = made
	return nil
}

// divide sends requests to the two backends by the weights that the gateway serves. It
// returns how many met each.
func (s *served) divide(requests float64, keys *rand.PCG) (stable, canary float64) {
	if s.picker == nil {
		part := float64(s.wire.Canary) / (float64(s.wire.Stable) + float64(s.wire.Canary))
		return requests * (1 - part), requests * part
	}
	n := int(requests)
	met := 0
	for range n {
		if s.picker.Pick(keys.Uint64()) == canaryBackend {
			met++
		}
	}
	return float64(n - met), float64(met)
}
