package played

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// version is one stored version of the route.
type version struct{ *unstructured.Unstructured }

func (v version) rules() []any {
	rules, _, _ := unstructured.NestedSlice(v.Object, "spec", "rules")
	return rules
}

// ownerOf names the rollout that manages a rule, or is empty.
func ownerOf(rule any) string {
	refs, _ := at(rule, "backendRefs").([]any)
	for _, name := range rollouts {
		if len(refs) == 2 && strings.HasPrefix(fmt.Sprint(at(refs[0], "name")), name+"-") {
			return name
		}
	}
	return ""
}

func isCanary(rule any, ref int) bool {
	refs, _ := at(rule, "backendRefs").([]any)
	return ref < len(refs) && strings.HasSuffix(fmt.Sprint(at(refs[ref], "name")), "-canary")
}

// managed returns the index of a rollout's rule and its weights.
func (v version) managed(name string) (index int, p pair) {
	for i, rule := range v.rules() {
		if ownerOf(rule) != name {
			continue
		}
		if isCanary(rule, 0) {
			return i, pair{weightAt(rule, 1), weightAt(rule, 0)}
		}
		return i, pair{weightAt(rule, 0), weightAt(rule, 1)}
	}
	return -1, pair{}
}

// rest is a version without what a write of the named rollout may change.
func (v version) rest(t *testing.T, name string) map[string]any {
	t.Helper()
	index, _ := v.managed(name)
	return onlyOurs(t, v.Unstructured, index)
}

// check reads from the stored versions of the route that nobody's write was lost, that
// each write of the manager changed one rule, the right one, and that no weight fell.
func (s *storm) check() {
	t := s.w.t
	last := s.w.route("web").ResourceVersion
	eventually(t, "the last version of the route in the log", func() (bool, string) {
		all := s.w.routes.versions("web")
		return all[len(all)-1].GetResourceVersion() == last, fmt.Sprint(len(all))
	})
	writes := map[string]*request{} // by the version that they were based on
	for _, r := range s.w.routeWrites("web", 0) {
		s.w.checkPaths(r)
		writes[s.base(r).GetResourceVersion()] = r
	}
	ours := 0
	all := s.w.routes.versions("web")
	for i := 1; i < len(all); i++ {
		was, is := version{all[i-1]}, version{all[i]}
		for _, name := range rollouts {
			if _, p := is.managed(name); p.stable+p.canary != 100 {
				t.Errorf("version %s: the weights of %s are %s", is.GetResourceVersion(), name, p)
			}
		}
		switch r := writes[was.GetResourceVersion()]; {
		case s.edits[is.GetResourceVersion()]:
			s.checkWeights(was, is, "")
		case cmp.Equal(at(was.Object, "spec"), at(is.Object, "spec")) && cmp.Equal(was.GetAnnotations(), is.GetAnnotations()):
			// The gateway has reported.
		case r == nil:
			t.Errorf("version %s, after %s, is by nobody who was asked to write", is.GetResourceVersion(), was.GetResourceVersion())
		default:
			ours++
			s.checkWrite(was, is, r)
		}
	}
	if want := s.rounds * len(rollouts); ours != want || len(writes) != want {
		t.Errorf("the manager made %d versions by %d accepted writes, want one for each of the %d raises", ours, len(writes), want)
	}
	for _, name := range rollouts {
		if _, p := (version{all[len(all)-1]}).managed(name); p.canary != s.rounds {
			t.Errorf("%s ends with the weights %s", name, p)
		}
	}
}

// checkWrite checks what a write of the manager made of a version.
func (s *storm) checkWrite(was, is version, r *request) {
	t := s.w.t
	who := ""
	set := s.weightsOf(r)
	for _, name := range rollouts {
		index, before := was.managed(name)
		if len(set[index]) != 2 {
			continue
		}
		who = name
		if _, after := is.managed(name); after.canary != before.canary+1 {
			t.Errorf("request %d takes %s from %s to %s, want one percent more", r.Number, name, before, after)
		}
	}
	if who == "" || len(set) != 1 {
		t.Errorf("request %d sets %v in version %s: not the weights of one managed rule", r.Number, set, was.GetResourceVersion())
		return
	}
	s.checkWeights(was, is, who)
	if diff := cmp.Diff(was.rest(t, who), is.rest(t, who)); diff != "" {
		t.Errorf("request %d of %s changes more than its weights (-before +after):\n%s", r.Number, who, diff)
	}
	for owner := range strings.SplitSeq(was.GetAnnotations()[v1alpha1.ManagedByAnnotation], ",") {
		if now := is.GetAnnotations()[v1alpha1.ManagedByAnnotation]; !strings.Contains(now, owner) || !strings.Contains(now, who) {
			t.Errorf("request %d of %s makes %q of the owners, who were %q", r.Number, who, now, owner)
		}
	}
}

// checkWeights checks that from one version to the next only the named rollout's weights
// differ.
func (s *storm) checkWeights(was, is version, except string) {
	for _, name := range rollouts {
		_, before := was.managed(name)
		if _, after := is.managed(name); name != except && after != before {
			s.w.t.Errorf("version %s changes the weights of %s from %s to %s, which is not its business", is.GetResourceVersion(), name, before, after)
		}
	}
}
