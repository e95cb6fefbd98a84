package played

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// gitopsPage is the page whose recipes the played tools follow.
const gitopsPage = "../../../docs/gitops.md"

// recipes is what the page tells each tool to leave alone in a route, by the route's
// kind.
type recipes struct {
	argoCD    map[string][]string // paths of jq
	kustomize map[string][]string // JSON Pointers
	helm      map[string][]string // JSON Pointers
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// ignoreRule is a rule of any of the three tools.
type ignoreRule struct {
	Kind              string                `json:"kind"`
	JQPathExpressions []string              `json:"jqPathExpressions"`
	Target            struct{ Kind string } `json:"target"`
	Paths             []string              `json:"paths"`
}

// readRecipes reads the recipes out of the page.
func readRecipes(t *testing.T) recipes {
	t.Helper()
	page, err := os.ReadFile(gitopsPage)
	if err != nil {
		t.Fatalf("reading the page: %v", err)
	}
	r := recipes{map[string][]string{}, map[string][]string{}, map[string][]string{}}
	for _, block := range yamlBlock.FindAllSubmatch(page, -1) {
		var object struct {
			Kind string `json:"kind"`
			Spec struct {
				IgnoreDifferences []ignoreRule                  `json:"ignoreDifferences"`
				Ignore            []ignoreRule                  `json:"ignore"`
				DriftDetection    struct{ Ignore []ignoreRule } `json:"driftDetection"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal(block[1], &object); err != nil {
			t.Fatalf("reading a block of the page: %v\n%s", err, block[1])
		}
		for _, rule := range object.Spec.IgnoreDifferences {
			r.argoCD[rule.Kind] = append(r.argoCD[rule.Kind], rule.JQPathExpressions...)
		}
		for _, rule := range object.Spec.Ignore {
			r.kustomize[rule.Target.Kind] = append(r.kustomize[rule.Target.Kind], rule.Paths...)
		}
		for _, rule := range object.Spec.DriftDetection.Ignore {
			r.helm[rule.Target.Kind] = append(r.helm[rule.Target.Kind], rule.Paths...)
		}
	}
	for tool, paths := range map[string][]string{
		"Argo CD": r.argoCD["HTTPRoute"], "a Kustomization": r.kustomize["HTTPRoute"], "a HelmRelease": r.helm["HTTPRoute"],
	} {
		if len(paths) == 0 {
			t.Fatalf("the page has no recipe for an HTTPRoute and %s", tool)
		}
	}
	return r
}

// forgetting takes ignored fields out of a copy of an object.
type forgetting func(object map[string]any) error

// argoCDForgets is what Argo CD does to both sides before it compares them.
func (r recipes) argoCDForgets(object map[string]any) error {
	for _, path := range r.argoCD["HTTPRoute"] {
		steps, err := parseJQ(path)
		if err != nil {
			return err
		}
		deleteJQ(object, steps)
	}
	return nil
}

// kustomizeForgets is what Flux does to both sides before it compares them. A place that
// is not there is no error.
func (r recipes) kustomizeForgets(object map[string]any) error {
	for _, path := range r.kustomize["HTTPRoute"] {
		if holder, key, ok := holderOf(object, path); ok {
			delete(holder, key)
		}
	}
	return nil
}

// jqStep is a field of a path of jq, or each element of the list in that field.
type jqStep struct {
	field string
	each  bool
}

var jqStepText = regexp.MustCompile(`^\.([A-Za-z]+)(\[\]\?)?`)

// parseJQ reads a path of jq, as far as the page needs it: fields, and lists with
// "[]?", which passes over what is no list.
func parseJQ(path string) ([]jqStep, error) {
	var steps []jqStep
	for rest := path; rest != ""; {
		match := jqStepText.FindStringSubmatch(rest)
		if match == nil {
			return nil, fmt.Errorf("this test does not understand %q, from %q on", path, rest)
		}
		steps = append(steps, jqStep{match[1], match[2] != ""})
		rest = rest[len(match[0]):]
	}
	if len(steps) == 0 || steps[len(steps)-1].each {
		return nil, fmt.Errorf("the path %q does not end with a field", path)
	}
	return steps, nil
}

// deleteJQ is jq's del(path).
func deleteJQ(value any, steps []jqStep) {
	object, ok := value.(map[string]any)
	if !ok {
		return
	}
	step, rest := steps[0], steps[1:]
	switch list, isList := object[step.field].([]any); {
	case len(rest) == 0:
		delete(object, step.field)
	case !step.each:
		deleteJQ(object[step.field], rest)
	case isList:
		for _, item := range list {
			deleteJQ(item, rest)
		}
	}
}

// holderOf returns the object that has the field to which a JSON Pointer (RFC 6901)
// leads, and the field's name. ok is false if there is no such field.
func holderOf(value any, pointer string) (holder map[string]any, key string, ok bool) {
	segments := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, segment := range segments {
		segment = strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
		switch at := value.(type) {
		case map[string]any:
			if value, ok = at[segment]; !ok {
				return nil, "", false
			}
			holder, key = at, segment
		case []any:
			n, err := strconv.Atoi(segment)
			if err != nil || n < 0 || n >= len(at) || i == len(segments)-1 {
				return nil, "", false
			}
			value = at[n]
		default:
			return nil, "", false
		}
	}
	return holder, key, true
}

// adoptLive is what Flux does before it applies an object that has other differences,
// too: the live values of the ignored places take the place of those in git.
func (r recipes) adoptLive(payload, live map[string]any) error {
	for _, path := range r.kustomize["HTTPRoute"] {
		from, key, ok := holderOf(live, path)
		if !ok {
			return fmt.Errorf("the live route has nothing at %s", path)
		}
		to, _, ok := holderOf(payload, path)
		if !ok {
			return fmt.Errorf("the route in git has nothing at %s", path)
		}
		to[key] = from[key]
	}
	return nil
}

// mergePatch returns the JSON merge patch (RFC 7396) from one object to another: lists
// are replaced as a whole.
func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for key := range from {
		if _, ok := to[key]; !ok {
			patch[key] = nil
		}
	}
	for key, value := range to {
		before, existed := from[key]
		was, wasObject := before.(map[string]any)
		is, isObject := value.(map[string]any)
		switch {
		case existed && wasObject && isObject:
			if inner := mergePatch(was, is); len(inner) > 0 {
				patch[key] = inner
			}
		case !existed || !cmp.Equal(before, value):
			patch[key] = value
		}
	}
	return patch
}

// respectArgoCD is what RespectIgnoreDifferences=true makes of the route in git: the
// merge patch that gives the live route its ignored fields back is applied to it.
func (r recipes) respectArgoCD(payload, live map[string]any) (map[string]any, error) {
	forgotten := (&unstructured.Unstructured{Object: live}).DeepCopy().Object
	if err := r.argoCDForgets(forgotten); err != nil {
		return nil, err
	}
	if err := r.argoCDForgets(payload); err != nil {
		return nil, err
	}
	result, ok := merged(payload, mergePatch(forgotten, live)).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the merge patch leaves no object")
	}
	return result, nil
}

// TestC25RecipesIgnoreWeightsOnly: of two routes that differ in the managed weights, the
// recipes of the page leave no difference, and of all else everything.
func TestC25RecipesIgnoreWeightsOnly(t *testing.T) {
	r := readRecipes(t)
	for tool, forget := range map[string]forgetting{"Argo CD": r.argoCDForgets, "Flux": r.kustomizeForgets} {
		for _, c := range []struct {
			name      string
			change    func(*unstructured.Unstructured)
			different bool
		}{
			{"weights", func(o *unstructured.Unstructured) { setWeights(o, 37, 63) }, false},
			{"a filter of the canary", func(o *unstructured.Unstructured) { delete(backendRefs(o)[1].(map[string]any), "filters") }, true},
			{"a backend's port", func(o *unstructured.Unstructured) { backendRefs(o)[0].(map[string]any)["port"] = int64(81) }, true},
			{"another rule", addRule, true},
		} {
			a, b := foreignRoute("shop", "web"), foreignRoute("shop", "web")
			c.change(b)
			for _, o := range []*unstructured.Unstructured{a, b} {
				if err := forget(o.Object); err != nil {
					t.Fatalf("%s: %v", tool, err)
				}
			}
			if diff := cmp.Diff(a.Object, b.Object); (diff != "") != c.different {
				t.Errorf("%s, %s: want a difference: %t, and there is\n%s", tool, c.name, c.different, diff)
			}
		}
	}
	if diff := cmp.Diff(r.argoCD["HTTPRoute"], r.argoCD["GRPCRoute"]); diff != "" {
		t.Errorf("Argo CD ignores other paths of a GRPCRoute (-HTTPRoute +GRPCRoute):\n%s", diff)
	}
	if diff := cmp.Diff(r.kustomize["HTTPRoute"], r.helm["HTTPRoute"]); diff != "" {
		t.Errorf("the two controllers of Flux ignore other paths (-Kustomization +HelmRelease):\n%s", diff)
	}
}

// TestC25RecipesAreSafeOfGit: what the page says of a route in git without weights, or
// with a rule in front of the managed one.
func TestC25RecipesAreSafeOfGit(t *testing.T) {
	r := readRecipes(t)
	live := foreignRoute("shop", "web")
	setWeights(live, 90, 10)
	without := foreignRoute("shop", "web")
	for _, ref := range backendRefs(without) {
		delete(ref.(map[string]any), "weight")
	}
	if err := r.adoptLive(without.Object, live.Object); err == nil {
		t.Error("Flux replaces a weight that is not in git")
	}
	inFront := foreignRoute("shop", "web")
	rules := rulesOf(inFront)
	setRules(inFront, slices.Concat(rules[1:2], rules))
	if err := r.adoptLive(inFront.Object, live.Object); err == nil {
		t.Error("Flux finds both weights in a rule with one backend")
	}
	appended := foreignRoute("shop", "web")
	addRule(appended)
	if err := r.adoptLive(appended.Object, live.Object); err != nil {
		t.Errorf("a rule behind the managed one: %v", err)
	}
	want := live.DeepCopy()
	addRule(want)
	if diff := cmp.Diff(want.Object, appended.Object); diff != "" {
		t.Errorf("Flux applies something else than the live weights and git's rules (-want +got):\n%s", diff)
	}
}
