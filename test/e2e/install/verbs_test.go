package install

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// stranger has no role at all.
const stranger = "nora"

// whoMay is who may give each order, in every way in which it can reach the API server:
// e is the editor, a the approver, b who is both, n who has neither role, and - is a
// refusal. The plan is guarded where a stage of it waits for an approval. The status is
// the outcome of the object that the order is for, or, for again, of the object that is
// deleted before. The ways:
//
//	create   a new object with the order
//	anew     server-side apply of a new object
//	update   the whole object that is there, as kubectl edit
//	replace  an object from a file in its place, as kubectl replace
//	patch    a merge patch, as kubectl annotate and the plugin
//	apply    server-side apply to an object that is there
//	again    a deletion, onDelete: Keep, and a creation under the same name
const whoMay = `
order    plan     status      create  anew  update  replace  patch  apply  again
approve  guarded  -           --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
skip     guarded  -           --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
promote  guarded  -           --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
finish   guarded  -           --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
retry    guarded  -           e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
resume   guarded  -           e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
abort    guarded  -           e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-

approve  guarded  InProgress  --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
skip     guarded  InProgress  --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
promote  guarded  InProgress  --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
finish   guarded  InProgress  --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
retry    guarded  InProgress  e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
resume   guarded  InProgress  e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
abort    guarded  InProgress  e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-

approve  guarded  Promoted    --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
skip     guarded  Promoted    --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
promote  guarded  Promoted    --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
finish   guarded  Promoted    --b-    --b-  e-b-    e-b-     eab-   eab-   --b-
retry    guarded  Promoted    e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
resume   guarded  Promoted    e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
abort    guarded  Promoted    e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-

finish   guarded  RolledBack  --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
finish   guarded  Returning   --b-    --b-  --b-    --b-     -ab-   -ab-   --b-

approve  open     InProgress  --b-    --b-  e-b-    e-b-     eab-   eab-   --b-
skip     open     InProgress  --b-    --b-  e-b-    e-b-     eab-   eab-   --b-
promote  open     InProgress  --b-    --b-  e-b-    e-b-     eab-   eab-   --b-
finish   open     -           --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
finish   open     InProgress  --b-    --b-  --b-    --b-     -ab-   -ab-   --b-
finish   open     Promoted    --b-    --b-  e-b-    e-b-     eab-   eab-   --b-
retry    open     InProgress  e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
resume   open     InProgress  e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
abort    open     InProgress  e-b-    e-b-  e-b-    e-b-     eab-   eab-   e-b-
`

// anOrder is what a row of the table says of the object that an order is for.
type anOrder struct {
	verb, plan, status string
	bed                *testbed.Bed
}

// rollout is the object with the order, or without.
func (o anOrder) rollout(name string, ordered bool) *v1alpha1.WeightedRollout {
	stages := []v1alpha1.Stage{{Weight: "10"}}
	if o.plan == "guarded" {
		stages = required("10")
	}
	wr := plan(name, "verbs", stages...)
	wr.Spec.OnDelete = v1alpha1.DeletionKeep
	if ordered {
		o.give(wr)
	}
	return wr
}

func (o anOrder) give(wr *v1alpha1.WeightedRollout) {
	if o.verb == "abort" {
		annotate(v1alpha1.AbortAnnotation, "1")(wr)
		return
	}
	order(commandText(v1alpha1.Verb(o.verb)))(wr)
}

// exists makes the object that the order is for, with a status.
func (o anOrder) exists(t *testing.T, name string) *v1alpha1.WeightedRollout {
	t.Helper()
	wr := o.rollout(name, false)
	create(t, o.bed, wr, v1alpha1.Outcome(strings.TrimPrefix(o.status, "-")))
	return wr
}

// ways try an order. All but the last are dry runs, so that one object serves them all.
var ways = map[string]func(context.Context, *testing.T, client.Client, anOrder, *v1alpha1.WeightedRollout) error{
	"create": func(ctx context.Context, _ *testing.T, c client.Client, o anOrder, _ *v1alpha1.WeightedRollout) error {
		wr := o.rollout("", true)
		wr.GenerateName = "new-"
		// A status that is sent along counts for nothing.
		wr.Status.Outcome, wr.Status.Attempt = v1alpha1.OutcomePromoted, 1
		return c.Create(ctx, wr, client.DryRunAll)
	},
	"anew": func(ctx context.Context, t *testing.T, c client.Client, o anOrder, _ *v1alpha1.WeightedRollout) error {
		return apply(ctx, t, c, o.rollout("new", true))
	},
	"update": func(ctx context.Context, _ *testing.T, c client.Client, o anOrder, wr *v1alpha1.WeightedRollout) error {
		wr = wr.DeepCopy()
		o.give(wr)
		wr.Status.Outcome = v1alpha1.OutcomePromoted
		return c.Update(ctx, wr, client.DryRunAll)
	},
	"replace": func(ctx context.Context, _ *testing.T, c client.Client, o anOrder, wr *v1alpha1.WeightedRollout) error {
		replacement := o.rollout(wr.Name, true)
		replacement.ResourceVersion = wr.ResourceVersion
		return c.Update(ctx, replacement, client.DryRunAll)
	},
	"patch": func(ctx context.Context, _ *testing.T, c client.Client, o anOrder, wr *v1alpha1.WeightedRollout) error {
		after := wr.DeepCopy()
		o.give(after)
		after.Status.Outcome = v1alpha1.OutcomePromoted
		return c.Patch(ctx, after, client.MergeFrom(wr), client.DryRunAll)
	},
	"apply": func(ctx context.Context, t *testing.T, c client.Client, o anOrder, wr *v1alpha1.WeightedRollout) error {
		return apply(ctx, t, c, o.rollout(wr.Name, true))
	},
	"again": func(ctx context.Context, t *testing.T, c client.Client, o anOrder, _ *v1alpha1.WeightedRollout) error {
		wr := o.exists(t, "again")
		defer func() {
			if err := client.IgnoreNotFound(o.bed.Client.Delete(ctx, o.rollout("again", false))); err != nil {
				t.Error(err)
			}
		}()
		if err := c.Delete(ctx, wr); err != nil {
			return err
		}
		return c.Create(ctx, o.rollout("again", true))
	},
}

// apply sends the whole object as kubectl apply --server-side does.
func apply(ctx context.Context, t *testing.T, c client.Client, wr *v1alpha1.WeightedRollout) error {
	t.Helper()
	u := asUnstructured(t, wr)
	delete(u.Object, "status")
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.DryRunAll, client.ForceOwnership, client.FieldOwner("people"))
}

// asUnstructured is a rollout as it is on the wire.
func asUnstructured(t *testing.T, wr *v1alpha1.WeightedRollout) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(wr)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WeightedRollout"))
	return u
}

// TestWhoMayGiveWhichOrder checks the table cell by cell.
func TestWhoMayGiveWhichOrder(t *testing.T) {
	bed := cluster(t)
	people(t, bed, "verbs")
	users := []struct{ letter, name string }{{"e", editor}, {"a", approver}, {"b", lead}, {"n", stranger}}
	clients := map[string]client.Client{}
	for _, u := range users {
		clients[u.letter] = as(t, bed, u.name)
	}
	lines := strings.Split(strings.TrimSpace(whoMay), "\n")
	head := strings.Fields(lines[0])
	there := map[string]*v1alpha1.WeightedRollout{}
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		if len(cells) == 0 {
			continue
		}
		o := anOrder{verb: cells[0], plan: cells[1], status: cells[2], bed: bed}
		name := strings.ToLower(o.plan + strings.TrimSuffix("-"+o.status, "--"))
		if there[name] == nil {
			there[name] = o.exists(t, name)
		}
		for i, way := range head[3:] {
			var may string
			for _, u := range users {
				may += answer(t, ways[way](t.Context(), t, clients[u.letter], o, there[name]), u.letter)
			}
			if may != cells[3+i] {
				t.Errorf("%s, %s plan, status %s, by %s: %s may, want %s", o.verb, o.plan, o.status, way, may, cells[3+i])
			}
		}
	}
}

// answer is the letter where the API server took a write, and - where it forbade it.
func answer(t *testing.T, err error, letter string) string {
	t.Helper()
	switch {
	case err == nil:
		return letter
	case apierrors.IsForbidden(err):
		return "-"
	}
	t.Error(err)
	return fmt.Sprintf("(%v)", err)
}
