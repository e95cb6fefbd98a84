package played

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// world is what one test has for itself: a namespace, a manager that looks after
// nothing else, the proxy through which it reaches the API server, and a Prometheus.
type world struct {
	t         *testing.T
	namespace string
	bed       *testbed.Bed
	client    client.WithWatch
	gateway   *playedGateway
	api       *apiProxy
	prom      *playedPrometheus
	routes    *routeLog

	kubeconfig string
	// loose is set by tests that edit what the manager wrote, or make its record
	// incomplete, so that the laws cannot be read off its writes.
	loose bool

	mu      sync.Mutex
	manager *testbed.Manager
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// newWorld prepares a world for a test, which then runs beside others.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	return newLoneWorld(t)
}

// newLoneWorld is newWorld for a test that is better run by itself.
func newLoneWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	s, err := start()
	if err != nil {
		t.Fatalf("starting the bed: %v", err)
	}
	w := &world{
		t: t, bed: s.bed, client: s.bed.Client, gateway: s.gateway,
		namespace: strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "-"), "-"),
	}
	if err := s.bed.CreateNamespace(t.Context(), w.namespace); err != nil {
		t.Fatal(err)
	}
	if err := s.bed.PlayGateway(t.Context(), w.namespace, "gw", playedController); err != nil {
		t.Fatal(err)
	}
	config, err := s.bed.ManagerConfig()
	if err != nil {
		t.Fatal(err)
	}
	w.api = newAPIProxy(t, config)
	w.prom = newPlayedPrometheus(t)
	w.routes = newRouteLog(t, w.client, w.namespace)
	w.kubeconfig = w.api.writeKubeconfig(t)
	t.Cleanup(w.close)
	return w
}

func (w *world) close() {
	w.mu.Lock()
	m := w.manager
	w.mu.Unlock()
	if m != nil {
		if !m.Running() {
			w.t.Errorf("the manager has ended by itself:\n%s", m.LogTail())
		}
		if err := m.Kill(); err != nil {
			w.t.Errorf("ending the manager: %v", err)
		}
	}
	if !w.loose {
		w.checkLaws()
	}
	if w.t.Failed() {
		w.explain()
	}
}

// explain logs what helps to understand a failure.
func (w *world) explain() {
	ctx := context.Background()
	var all v1alpha1.WeightedRolloutList
	if err := w.client.List(ctx, &all, client.InNamespace(w.namespace)); err == nil {
		for i := range all.Items[:min(3, len(all.Items))] {
			all.Items[i].ManagedFields = nil
			text, _ := yaml.Marshal(all.Items[i])
			w.t.Logf("WeightedRollout %s:\n%s", all.Items[i].Name, text)
		}
	}
	var lines []string
	for _, r := range w.api.since(0, (*request).isOurWrite) {
		lines = append(lines, r.String())
	}
	w.t.Logf("the manager's last writes:\n%s", strings.Join(lines[max(0, len(lines)-40):], "\n"))
	w.t.Logf("weights of the routes: %s", w.routes)
	w.t.Logf("log of the manager:\n%s", w.managerLog())
}

// managerLog returns the last lines about this namespace in the managers' log.
func (w *world) managerLog() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.manager == nil {
		return "there is no manager"
	}
	f, err := os.Open(w.manager.LogPath)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	var lines []string
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if line := scanner.Text(); strings.Contains(line, w.namespace) || !strings.HasPrefix(line, "{") {
			lines = append(lines, line[:min(len(line), 700)])
		}
	}
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// startManager starts the manager for this namespace.
func (w *world) startManager(args ...string) {
	w.t.Helper()
	m, err := w.bed.StartManager(context.WithoutCancel(w.t.Context()), testbed.ManagerOptions{
		Kubeconfig: w.kubeconfig, Args: append([]string{"--namespaces=" + w.namespace}, args...),
	})
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.manager = m
}

// killManager ends the manager as a crash would. It can be called from the proxy's
// hooks: a manager that still starts is waited for, while its request hangs.
func (w *world) killManager() { w.endManager((*testbed.Manager).Kill) }

// endManager is killManager with another way to end it.
func (w *world) endManager(end func(*testbed.Manager) error) {
	for deadline := time.Now().Add(patience); !w.hasManager() && time.Now().Before(deadline); {
		time.Sleep(pollEvery)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.manager == nil {
		w.t.Error("there is no manager to be ended")
		return
	}
	if err := end(w.manager); err != nil {
		w.t.Errorf("ending the manager: %v", err)
	}
	w.manager = nil
}

// hasManager is false after killManager.
func (w *world) hasManager() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.manager != nil
}

func (w *world) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.manager.PID()
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), o); err != nil {
		w.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

// rollout creates a rollout with everything that it needs: a route at 100/0 and
// two Services with a ready endpoint.
func (w *world) rollout(name string, changes ...change) {
	w.t.Helper()
	w.create(newRoute(w.namespace, name, ptr.To[int32](100), ptr.To[int32](0)))
	w.rolloutFor(name, changes...)
}

// rolloutFor is rollout for a route that is there already.
func (w *world) rolloutFor(name string, changes ...change) {
	w.t.Helper()
	w.endpoints(name)
	w.create(newRollout(w.namespace, name, w.prom.url(), changes...))
}

func (w *world) endpoints(name string) {
	w.t.Helper()
	w.create(newEndpoints(w.namespace, stableOf(name), true))
	w.create(newEndpoints(w.namespace, canaryOf(name), true))
}

func (w *world) get(name string) *v1alpha1.WeightedRollout {
	w.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	w.read(name, wr)
	return wr
}

// read reads an object. An API server that is too busy to answer is asked again.
func (w *world) read(name string, o client.Object) {
	w.t.Helper()
	var err error
	for deadline := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		err = w.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o)
		if err == nil {
			return
		}
		if apierrors.IsNotFound(err) || time.Now().After(deadline) {
			w.t.Fatalf("reading %T %s: %v", o, name, err)
		}
	}
}

func (w *world) route(name string) *gatewayv1.HTTPRoute {
	w.t.Helper()
	route := &gatewayv1.HTTPRoute{}
	w.read(name, route)
	return route
}

// weightsNow are the weights of a route's first rule.
func (w *world) weightsNow(name string) pair {
	w.t.Helper()
	return pairOf(w.route(name))
}

// edit changes the spec or the metadata of a rollout.
func (w *world) edit(name string, c change) {
	w.t.Helper()
	wr := w.get(name)
	before := wr.DeepCopy()
	c(wr)
	if err := w.client.Patch(w.t.Context(), wr, client.MergeFrom(before)); err != nil {
		w.t.Fatalf("editing WeightedRollout %s: %v", name, err)
	}
}

// command gives a rollout an order for its present attempt.
func (w *world) command(name string, verb v1alpha1.Verb) {
	w.t.Helper()
	w.edit(name, func(wr *v1alpha1.WeightedRollout) {
		metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.CommandAnnotation,
			fmt.Sprintf(`{"id":"%s-%d","verb":%q,"attempt":%d}`, verb, wr.Status.Attempt, verb, wr.Status.Attempt))
	})
}

// editWeights changes the weights of a route's first rule by hand.
func (w *world) editWeights(name string, p pair) {
	w.t.Helper()
	route := w.route(name)
	before := route.DeepCopy()
	route.Spec.Rules[0].BackendRefs[0].Weight = new(int32(p.stable))
	route.Spec.Rules[0].BackendRefs[1].Weight = new(int32(p.canary))
	if err := w.client.Patch(w.t.Context(), route, client.MergeFrom(before), client.FieldOwner("by-hand")); err != nil {
		w.t.Fatalf("editing the weights of HTTPRoute %s: %v", name, err)
	}
}

// await waits until a rollout is as wanted, and returns it.
func (w *world) await(name, what string, condition func(*v1alpha1.WeightedRollout) bool) *v1alpha1.WeightedRollout {
	w.t.Helper()
	var wr *v1alpha1.WeightedRollout
	eventually(w.t, fmt.Sprintf("%s: %s", name, what), func() (bool, string) {
		wr = w.get(name)
		return condition(wr), summary(wr)
	})
	return wr
}

func (w *world) awaitPhase(name string, phase v1alpha1.Phase) *v1alpha1.WeightedRollout {
	w.t.Helper()
	return w.await(name, "phase "+string(phase), func(wr *v1alpha1.WeightedRollout) bool { return wr.Status.Phase == phase })
}

// awaitShare waits until a share is confirmed.
func (w *world) awaitShare(name string, share v1alpha1.Percent) *v1alpha1.WeightedRollout {
	w.t.Helper()
	return w.await(name, "a confirmed share of "+string(share), func(wr *v1alpha1.WeightedRollout) bool {
		return desired(wr) == share && wr.Status.Share.ConfirmedAt != nil
	})
}

// awaitVerdict waits for a verdict.
func (w *world) awaitVerdict(name string, state v1alpha1.VerdictState, reason string) *v1alpha1.WeightedRollout {
	w.t.Helper()
	return w.await(name, fmt.Sprintf("verdict %s (%s)", state, reason), func(wr *v1alpha1.WeightedRollout) bool {
		v := wr.Status.Verdict
		return v != nil && v.State == state && v.Reason == reason
	})
}

// awaitQuestions waits until Prometheus has been asked n more times for something
// that contains the text.
func (w *world) awaitQuestions(n int, text string) {
	w.t.Helper()
	_, from := w.prom.asked(0)
	eventually(w.t, fmt.Sprintf("%d more questions for %s", n, text), func() (bool, string) {
		questions, _ := w.prom.asked(from)
		have := 0
		for _, q := range questions {
			if strings.Contains(q.query, text) {
				have++
			}
		}
		return have >= n, fmt.Sprintf("%d of them", have)
	})
}

func desired(wr *v1alpha1.WeightedRollout) v1alpha1.Percent {
	return ptr.Deref(wr.Status.Share.Desired, "none")
}

// condition returns a condition, or an empty one.
func condition(wr *v1alpha1.WeightedRollout, kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(wr.Status.Conditions, kind), metav1.Condition{})
}

// isStalled tells whether a rollout says that a person has to do something, for the
// given reason and with the given text.
func isStalled(wr *v1alpha1.WeightedRollout, reason, text string) bool {
	c := condition(wr, v1alpha1.ConditionStalled)
	return c.Status == metav1.ConditionTrue && c.Reason == reason && strings.Contains(c.Message, text)
}

func summary(wr *v1alpha1.WeightedRollout) string {
	s := wr.Status
	text := fmt.Sprintf("phase %q, outcome %q, desired %s, confirmed %t", s.Phase, s.Outcome, desired(wr), s.Share.ConfirmedAt != nil)
	if s.Verdict != nil {
		text += fmt.Sprintf(", verdict %s (%s) %s: %s", s.Verdict.State, s.Verdict.Reason, s.Verdict.Check, s.Verdict.Message)
	}
	ready := condition(wr, v1alpha1.ConditionReady)
	return text + fmt.Sprintf(", %s: %s", ready.Reason, ready.Message)
}

// events returns the texts of a rollout's events with the given reason, the oldest
// first.
func (w *world) events(name, reason string) []string {
	w.t.Helper()
	var list eventsv1.EventList
	if err := w.client.List(w.t.Context(), &list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatalf("listing events: %v", err)
	}
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return cmp.Compare(a.EventTime.UnixMicro(), b.EventTime.UnixMicro()) })
	var notes []string
	for _, e := range list.Items {
		if e.Regarding.Name == name && e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

// awaitEvent waits for an event whose text contains the given one.
func (w *world) awaitEvent(name, reason, text string) {
	w.t.Helper()
	eventually(w.t, fmt.Sprintf("an event %s of %s with %q", reason, name, text), func() (bool, string) {
		notes := w.events(name, reason)
		return slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, text) }), fmt.Sprintf("%q", notes)
	})
}
