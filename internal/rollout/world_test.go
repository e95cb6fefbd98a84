package rollout_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// start is when every simulated world begins.
var start = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// failer is what the world needs of a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a small cluster with one rollout in it: the object, its routes, the
// gateway that serves them, the endpoints, the metrics, and the controller's own
// memory, all under a virtual clock. Nothing in it runs by itself: it is moved by
// runFor and settle.
type world struct {
	tb failer
	// at is the true time, by which the metrics are stamped. The controller's clock
	// is off by skew.
	at   time.Time
	skew time.Duration

	object  object
	routes  []*servedRoute
	gateway gateway
	// stableReady and canaryReady tell whether the pods that are ready are endpoints of
	// the Services; sharedPods, whether the Services pick the same ones.
	stableReady, canaryReady, sharedPods bool
	// stableElsewhere and canaryElsewhere tell whether the Services are in another namespace.
	stableElsewhere, canaryElsewhere bool
	// stable and canary are what runs the pods.
	stable, canary *fleet
	syncTool       *syncTool
	// owner is the older rollout of the same rule, if any.
	owner string
	// partOwner is the older rollout that has all rules of the route named taken, if any.
	partOwner, taken string
	specProblem      *route.Problem
	evidence         map[health.Track]*evidence
	windows          windows
	// score is the health score of a canary in a poor mood.
	score float64
	// counts is how the gateway divides the requests that it counts; crossing is a rule
	// whose requests it counts as well.
	counts   division
	crossing string

	controller controller
	// sleeper is a leader that was stopped before its write to a route, if any.
	sleeper *sleeper
	// sleepNext lets the controller be stopped before its next raise.
	sleepNext bool
	laws      laws
	journal   journal
}

// object is the WeightedRollout as the API server stores it.
type object struct {
	spec        v1alpha1.WeightedRolloutSpec
	status      v1alpha1.WeightedRolloutStatus
	generation  int64
	annotations map[string]string
	finalizer   bool
	deleting    bool
	gone        bool
	// denied lets the API server refuse every write to the status, as a policy does for
	// good or, with busy, an outage for a while; ordersDenied, to the annotations.
	denied, busy, ordersDenied bool
}

// servedRoute is an HTTPRoute and what the gateway is about to say of it.
type servedRoute struct {
	name string
	// stored is nil while there is no such route.
	stored *gatewayv1.HTTPRoute
	// due is when the gateway will have taken the present generation.
	due    time.Time
	writer string
	// denied lets the API server refuse every write.
	denied bool
}

// gateway confirms routes.
type gateway struct {
	delay time.Duration
	// silent keeps it from reporting anything new.
	silent bool
	// rejects is the reason for which it does not resolve the routes, if any.
	rejects string
	// idle backends, which have no weight, are not looked at then.
	ignoresIdle bool
}

// refuses reports whether the gateway does not resolve a route as it is.
func (g gateway) refuses(hr *gatewayv1.HTTPRoute) bool {
	canary := hr.Spec.Rules[1].BackendRefs[1].Weight
	return g.rejects != "" && (!g.ignoresIdle || canary == nil || *canary != 0)
}

// newWorld returns a world with the given spec and one route for each that the
// spec names, at stable 100 and canary 0. Everything in it is well.
func newWorld(tb failer, spec v1alpha1.WeightedRolloutSpec) *world {
	w := &world{
		tb: tb, at: start,
		object:      object{spec: spec, generation: 1, annotations: map[string]string{}},
		gateway:     gateway{delay: 2 * time.Second},
		stableReady: true, canaryReady: true,
		stable: newFleet(v1alpha1.TrackStable, 1, 10), canary: newFleet(v1alpha1.TrackCanary, 2, 10),
		evidence: map[health.Track]*evidence{
			health.TrackCanary: {mood: good, since: start.Add(-time.Hour)},
			health.TrackStable: {mood: good, since: start.Add(-time.Hour)},
		},
		windows:    defaultWindows,
		score:      0.5,
		controller: controller{crash: never, refusals: map[string]string{}},
	}
	for _, ref := range spec.Routes {
		w.routes = append(w.routes, &servedRoute{name: ref.Name})
		w.createRoute(len(w.routes)-1, weightsOf(100, 0))
	}
	return w
}

func (w *world) clock() time.Time { return w.at.Add(w.skew) }

// status is the status as it is stored.
func (w *world) status() *v1alpha1.WeightedRolloutStatus { return &w.object.status }

// pair is a rule's two weights; nil where they are left out.
type pair struct{ stable, canary *int32 }

func weightsOf(stable, canary int32) pair { return pair{&stable, &canary} }

// weightsFrom reads what pair.String writes.
func weightsFrom(text string) pair {
	var stable, canary int32
	if n, err := fmt.Sscanf(text, "%d/%d", &stable, &canary); n != 2 || err != nil {
		return pair{}
	}
	return weightsOf(stable, canary)
}

func (p pair) String() string {
	text := func(w *int32) string {
		if w == nil {
			return "-"
		}
		return fmt.Sprint(*w)
	}
	return text(p.stable) + "/" + text(p.canary)
}

// createRoute makes the i-th route, with another uid than ever before.
func (w *world) createRoute(i int, p pair, others ...gatewayv1.HTTPBackendRef) {
	r := w.routes[i]
	hr := &gatewayv1.HTTPRoute{}
	hr.Namespace, hr.Name = "shop", r.name
	hr.UID = types.UID(fmt.Sprintf("%s-%d", r.name, w.journal.counter()))
	hr.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "gw"}}
	refs := append([]gatewayv1.HTTPBackendRef{backendRef("web-stable", p.stable), backendRef("web-canary", p.canary)}, others...)
	testers := []gatewayv1.HTTPBackendRef{backendRef("web-canary", nil)}
	hr.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: testers}, {BackendRefs: refs}}
	w.store(r, hr)
}

func backendRef(service string, weight *int32) gatewayv1.HTTPBackendRef {
	port := gatewayv1.PortNumber(80)
	ref := gatewayv1.HTTPBackendRef{}
	ref.Name, ref.Port, ref.Weight = gatewayv1.ObjectName(service), &port, weight
	return ref
}

// store keeps a version of a route as the API server does: every write has a new
// resourceVersion, and one that changes the spec a new generation.
func (w *world) store(r *servedRoute, hr *gatewayv1.HTTPRoute) {
	hr.ResourceVersion = fmt.Sprint(w.journal.counter())
	hr.Generation++
	r.stored, r.due = hr, w.at.Add(w.gateway.delay)
}

// edit changes the weights of the i-th route by another hand than the controller's.
func (w *world) edit(i int, p pair, writer string) {
	r := w.routes[i]
	if r.stored == nil {
		return
	}
	hr := r.stored.DeepCopy()
	refs := hr.Spec.Rules[1].BackendRefs
	refs[0].Weight, refs[1].Weight = p.stable, p.canary
	r.writer = writer
	w.store(r, hr)
}

// live returns the pair's weights in the i-th route.
func (w *world) live(i int) pair {
	refs := w.routes[i].stored.Spec.Rules[1].BackendRefs
	return pair{refs[0].Weight, refs[1].Weight}
}

// wire writes down what every route carries: "95/5", or "95/5 95/5".
func (w *world) wire() string {
	texts := make([]string, len(w.routes))
	for i, r := range w.routes {
		texts[i] = "none"
		if r.stored != nil {
			texts[i] = w.live(i).String()
		}
	}
	return strings.Join(texts, " ")
}

// serve lets the gateway report on what is due. It returns the routes whose report
// changed.
func (w *world) serve() []string {
	var changed []string
	for _, r := range w.routes {
		if r.stored == nil || w.gateway.silent || r.due.After(w.at) || !w.stale(r.stored) {
			continue
		}
		hr := r.stored.DeepCopy()
		hr.Status.Parents = []gatewayv1.RouteParentStatus{{
			ParentRef: gatewayv1.ParentReference{Name: "gw"}, ControllerName: "example.com/gateway",
			Conditions: []metav1.Condition{
				{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", ObservedGeneration: hr.Generation},
				{Type: "ResolvedRefs", Status: metav1.ConditionTrue, Reason: "ResolvedRefs", ObservedGeneration: hr.Generation},
			},
		}}
		if w.gateway.refuses(hr) {
			c := &hr.Status.Parents[0].Conditions[1]
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, w.gateway.rejects, "no such Service"
		}
		hr.ResourceVersion = fmt.Sprint(w.journal.counter())
		r.stored = hr
		changed = append(changed, r.name)
	}
	return changed
}

// stale reports whether the gateway has something new to say of a route.
func (w *world) stale(hr *gatewayv1.HTTPRoute) bool {
	if len(hr.Status.Parents) == 0 {
		return true
	}
	c := hr.Status.Parents[0].Conditions[1]
	return c.ObservedGeneration != hr.Generation || (c.Status == metav1.ConditionFalse) != w.gateway.refuses(hr)
}

// command puts a command into the annotation.
func (w *world) command(c v1alpha1.Command) {
	text, err := json.Marshal(c)
	if err != nil {
		w.tb.Fatalf("encode the command: %v", err)
	}
	w.object.annotations[v1alpha1.CommandAnnotation] = string(text)
}

// say gives a command for the present attempt and stage, with an id of its own.
func (w *world) say(verb v1alpha1.Verb) {
	c := v1alpha1.Command{ID: fmt.Sprint(w.journal.counter()), Verb: verb, Attempt: w.status().Attempt}
	if s := w.status().Stage; s != nil && (verb == v1alpha1.VerbApprove || verb == v1alpha1.VerbSkip) {
		c.Stage = &s.Index
	}
	w.command(c)
}

func (w *world) abort(attempt int64) {
	w.object.annotations[v1alpha1.AbortAnnotation] = fmt.Sprint(attempt)
}

// change edits the spec.
func (w *world) change(edit func(*v1alpha1.WeightedRolloutSpec)) {
	spec := w.object.spec.DeepCopy()
	edit(spec)
	w.object.spec = *spec
	w.object.generation++
}

func (w *world) remove() {
	w.object.deleting = true
	w.object.gone = !w.object.finalizer
}

// createAgain creates the rollout again after it was deleted: without a status.
func (w *world) createAgain(spec v1alpha1.WeightedRolloutSpec) {
	w.object = object{spec: spec, generation: 1, annotations: map[string]string{}}
	l := &w.laws
	l.serving.attempt, l.updated, l.patience, l.earned = "", "", patience{}, earned{}
	w.restart()
}
