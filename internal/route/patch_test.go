package route_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// annotate sets the annotations of a document.
func annotate(text, annotations string) string {
	return strings.Replace(text, "metadata: {", "metadata: {annotations: "+annotations+", ", 1)
}

func TestPatchAnnotation(t *testing.T) {
	const set = `{"op":"add","path":"/metadata/annotations","value":{"weightedrollout.dev/managed-by":"web"}}`
	const add = `{"op":"add","path":"/metadata/annotations/weightedrollout.dev~1managed-by","value":`
	for _, tc := range []struct {
		name        string
		annotations string
		want        string
	}{
		{"no map", "null", set},
		{"an empty map", "{}", set},
		{"others", "{a: b}", add + `"web"}`},
		{"empty", `{weightedrollout.dev/managed-by: ""}`, add + `"web"}`},
		{"ours", "{weightedrollout.dev/managed-by: web}", ""},
		{"ours among others", `{weightedrollout.dev/managed-by: "zoo, web"}`, ""},
		{"another's", "{weightedrollout.dev/managed-by: api}", add + `"api,web"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc := document(t, annotate(plain(95, 5), tc.annotations))
			after, patch := write(t, doc, nil, percent(5))
			want := ""
			if tc.want != "" {
				want = `[{"op":"replace","path":"/metadata/resourceVersion","value":"7"},` + tc.want + `]`
			}
			if diff := cmp.Diff(want, string(patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
			if _, again := write(t, after, nil, percent(5)); again != nil {
				t.Errorf("a second patch: %s", again)
			}
		})
	}
}

// Two rollouts that manage different rules of one route do not write for ever.
func TestTwoRolloutsOnOneRoute(t *testing.T) {
	doc := document(t, withRules(severalRules))
	patchAs := func(doc []byte, name string, rules ...string) []byte {
		r := decode(t, doc)
		patch, err := route.Inspect(r, rules, pair).Patch(r, percent(5), name)
		if err != nil {
			t.Fatal(err)
		}
		return patch
	}
	doc = apply(t, doc, patchAs(doc, "web", "a"))
	doc = apply(t, doc, patchAs(doc, "api", "b"))
	if diff := cmp.Diff([]string{"api", "web"}, route.Owners(decode(t, doc))); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if a, b := patchAs(doc, "web", "a"), patchAs(doc, "api", "b"); a != nil || b != nil {
		t.Errorf("more patches: %s and %s", a, b)
	}

	r := decode(t, doc)
	patch, err := route.Inspect(r, []string{"a"}, pair).Release(r, nil, "web")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"api"}, route.Owners(decode(t, apply(t, doc, patch)))); diff != "" {
		t.Errorf("owners after one left (-want +got):\n%s", diff)
	}
}

func TestRelease(t *testing.T) {
	none := weights.ShareNone
	const guard = `{"op":"replace","path":"/metadata/resourceVersion","value":"7"}`
	const remove = `{"op":"remove","path":"/metadata/annotations/weightedrollout.dev~1managed-by"}`
	const restore = `{"op":"add","path":"/spec/rules/0/backendRefs/0/weight","value":100},{"op":"add","path":"/spec/rules/0/backendRefs/1/weight","value":0}`
	for _, tc := range []struct {
		name  string
		text  string
		share *weights.Share
		want  string
	}{
		{"restore", annotate(plain(80, 20), "{weightedrollout.dev/managed-by: web}"), &none, guard + "," + restore + "," + remove},
		{"keep", annotate(plain(80, 20), "{a: b, weightedrollout.dev/managed-by: web}"), nil, guard + "," + remove},
		{"already restored", annotate(plain(100, 0), "{weightedrollout.dev/managed-by: web}"), &none, guard + "," + remove},
		{"never annotated", plain(80, 20), &none, guard + "," + restore},
		{"another's annotation", annotate(plain(100, 0), "{weightedrollout.dev/managed-by: api}"), &none, ""},
		{
			"shared annotation", annotate(plain(100, 0), `{weightedrollout.dev/managed-by: "api,web,zoo"}`), &none,
			guard + `,{"op":"add","path":"/metadata/annotations/weightedrollout.dev~1managed-by","value":"api,zoo"}`,
		},
		{"nothing to do", plain(100, 0), &none, ""},
		{
			"the rules are gone", annotate(withRules("\n  - backendRefs: [{name: web-stable, port: 80}]\n"), "{weightedrollout.dev/managed-by: web}"), &none,
			guard + "," + remove,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := parse(t, tc.text)
			patch, err := route.Inspect(r, nil, pair).Release(r, tc.share, owner)
			if err != nil {
				t.Fatal(err)
			}
			want := ""
			if tc.want != "" {
				want = "[" + tc.want + "]"
			}
			if diff := cmp.Diff(want, string(patch)); diff != "" {
				t.Errorf("patch (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPatchErrors(t *testing.T) {
	r := parse(t, plain(80, 20))
	i := route.Inspect(r, nil, pair)
	later, fresh := *r, *r
	later.ResourceVersion, fresh.ResourceVersion = "8", ""
	for _, tc := range []struct {
		name string
		do   func() ([]byte, error)
		want string
	}{
		{"another version", func() ([]byte, error) { return i.Patch(&later, 0, owner) }, `HTTPRoute shop/web: inspected at resourceVersion "7", but the patch is for "8"`},
		{"another version to release", func() ([]byte, error) { return i.Release(&later, nil, owner) }, `HTTPRoute shop/web: inspected at resourceVersion "7", but the patch is for "8"`},
		{"no version", func() ([]byte, error) { return route.Inspect(&fresh, nil, pair).Patch(&fresh, 0, owner) }, "HTTPRoute shop/web has no resourceVersion, so a stale write could not be told"},
		{"no owner", func() ([]byte, error) { return i.Patch(r, 0, "") }, `"" is no name of a rollout`},
		{"two owners", func() ([]byte, error) { return i.Patch(r, 0, "a,b") }, `"a,b" is no name of a rollout`},
		{"blank around the owner", func() ([]byte, error) { return i.Release(r, nil, " a") }, `" a" is no name of a rollout`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			patch, err := tc.do()
			if err == nil || err.Error() != tc.want || patch != nil {
				t.Errorf("got %s and the error %v, want %q", patch, err, tc.want)
			}
		})
	}
}

// Inspecting and patching change nothing of the object that was read: it may be the
// cache's.
func TestInputIsNotChanged(t *testing.T) {
	text := annotate(plain(80, 20), "{"+v1alpha1.ManagedByAnnotation+": api}")
	r, before := parse(t, text), parse(t, text)
	names := []string{"z", "a"}
	_ = route.Inspect(r, names, pair)
	i := route.Inspect(r, nil, pair)
	share := percent(0)
	if _, err := i.Patch(r, percent(5), owner); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Release(r, &share, "api"); err != nil {
		t.Fatal(err)
	}
	route.Accepted(r, route.ConfirmGeneration, nil)
	if diff := cmp.Diff(before, r); diff != "" || names[0] != "z" {
		t.Errorf("names %v, the route (-before +after):\n%s", names, diff)
	}
}
