package gateway

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// ruleWeights are the weights of a route's backends, rule by rule.
type ruleWeights [][]int32

func weightsOf(o any) ruleWeights {
	var all ruleWeights
	switch r := o.(type) {
	case *gatewayv1.HTTPRoute:
		for _, rule := range r.Spec.Rules {
			var weights []int32
			for _, b := range rule.BackendRefs {
				weights = append(weights, *b.Weight)
			}
			all = append(all, weights)
		}
	case *gatewayv1.GRPCRoute:
		for _, rule := range r.Spec.Rules {
			var weights []int32
			for _, b := range rule.BackendRefs {
				weights = append(weights, *b.Weight)
			}
			all = append(all, weights)
		}
	}
	return all
}

// ledger has every change of a route's weights.
type ledger struct {
	mu   sync.Mutex
	seen []ruleWeights
}

// open begins a ledger of a route; list is an empty list of its kind.
func (s *shop) open(list client.ObjectList, name string) *ledger {
	s.t.Helper()
	w, err := bed.Client.Watch(s.t.Context(), list, client.InNamespace(s.namespace), client.MatchingFields{"metadata.name": name})
	s.must(err, "watch the route")
	l := &ledger{}
	go func() {
		for e := range w.ResultChan() {
			weights := weightsOf(e.Object)
			if e.Type == apiwatch.Deleted || weights == nil {
				continue
			}
			l.mu.Lock()
			if len(l.seen) == 0 || !reflect.DeepEqual(l.seen[len(l.seen)-1], weights) {
				l.seen = append(l.seen, weights)
			}
			l.mu.Unlock()
		}
	}()
	s.t.Cleanup(w.Stop)
	return l
}

func (l *ledger) entries() []ruleWeights {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.seen)
}

// canary lists the weights that the second backend of a rule has had.
func (l *ledger) canary(rule int) []int32 {
	var had []int32
	for _, weights := range l.entries() {
		had = append(had, weights[rule][1])
	}
	return slices.Compact(had)
}

// wantCanary waits until a rule's second backend has had these weights, and checks that it
// has had no others. It waits since a watch may trail behind by a moment.
func (s *shop) wantCanary(l *ledger, rule int, want ...int32) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("the weights %v in rule %d", want, rule), func() (bool, string) {
		got := l.canary(rule)
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			s.t.Fatalf("the canary's weights in rule %d: got %v, want %v", rule, got, want)
		}
		return len(got) == len(want), fmt.Sprint(got)
	})
}

// snapshot is a route as the API server has it, without what changes by itself.
func (s *shop) snapshot(kind, name string) map[string]any {
	s.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(gatewayv1.GroupVersion.String())
	u.SetKind(kind)
	s.must(bed.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: name}, u), "read the route")
	delete(u.Object, "status")
	for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return u.Object
}

// wantOnlyWeights checks that a route differs from a snapshot in the weights of these
// rules and in the controller's annotation, and in nothing else.
func (s *shop) wantOnlyWeights(kind, name string, before map[string]any, rules map[int][]int64) {
	s.t.Helper()
	want := (&unstructured.Unstructured{Object: before}).DeepCopy()
	want.SetAnnotations(map[string]string{v1alpha1.ManagedByAnnotation: "web"})
	list, _, err := unstructured.NestedSlice(want.Object, "spec", "rules")
	s.must(err, "read the rules")
	for i, weights := range rules {
		refs := list[i].(map[string]any)["backendRefs"].([]any)
		for j, w := range weights {
			refs[j].(map[string]any)["weight"] = w
		}
	}
	s.must(unstructured.SetNestedSlice(want.Object, list, "spec", "rules"), "write the rules")
	if diff := cmp.Diff(want.Object, s.snapshot(kind, name)); diff != "" {
		s.t.Errorf("%s %s (-want +got):\n%s", kind, name, diff)
	}
}

// edit changes the rollout.
func (s *shop) edit(change func(*v1alpha1.WeightedRollout)) {
	s.t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	s.must(bed.Client.Get(s.t.Context(), s.key(), wr), "read the rollout")
	before := wr.DeepCopy()
	change(wr)
	s.must(bed.Client.Patch(s.t.Context(), wr, client.MergeFrom(before)), "change the rollout")
}

// revise names another revision.
func (s *shop) revise(revision string) {
	s.t.Helper()
	s.edit(func(wr *v1alpha1.WeightedRollout) { wr.Spec.Revision = revision })
}

// order gives a command for the present attempt, and for the present stage if it is bound
// to one.
func (s *shop) order(verb v1alpha1.Verb) {
	s.t.Helper()
	s.edit(func(wr *v1alpha1.WeightedRollout) {
		st := wr.Status
		c := v1alpha1.Command{ID: fmt.Sprintf("%s-%d", verb, st.Attempt), Verb: verb, Attempt: st.Attempt}
		if verb == v1alpha1.VerbApprove && st.Stage != nil {
			c.Stage = &st.Stage.Index
			c.ID += fmt.Sprintf("-%d", st.Stage.Index)
		}
		text, err := json.Marshal(c)
		s.must(err, "write the command")
		metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.CommandAnnotation, string(text))
	})
}

// awaitApproval waits until a stage of a revision has only the approval to wait for.
func (s *shop) awaitApproval(revision string, stage int32) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("stage %d of %s awaits approval", stage, revision), func() (bool, string) {
		st := s.status()
		return st.Revision == revision && st.Phase == v1alpha1.PhaseAwaitingApproval && st.Stage.Index == stage, describe(st)
	})
}

func (s *shop) awaitPhase(revision string, phase v1alpha1.Phase) v1alpha1.WeightedRolloutStatus {
	s.t.Helper()
	var st v1alpha1.WeightedRolloutStatus
	s.eventually(fmt.Sprintf("%s is %s", revision, phase), func() (bool, string) {
		st = s.status()
		return st.Revision == revision && st.Phase == phase, describe(st)
	})
	return st
}

// withApproval is a stage that is left when the test says so.
func withApproval(weight v1alpha1.Percent) v1alpha1.Stage {
	return v1alpha1.Stage{Weight: weight, Soak: "1s", Approval: v1alpha1.ApprovalRequired}
}

func stage(weight v1alpha1.Percent) v1alpha1.Stage { return v1alpha1.Stage{Weight: weight, Soak: "1s"} }
