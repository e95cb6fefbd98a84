package played

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// acceptedWrites returns the weights of the manager's accepted writes to the route web, and
// when they were sent, from a request on.
func (w *world) acceptedWrites(from int) (weights []pair, at []time.Time) {
	for _, r := range w.api.since(from, func(r *request) bool { return r.isRouteWrite() && r.Name == "web" && r.accepted() }) {
		if p, ok := r.firstPair(); ok {
			weights, at = append(weights, p), append(at, r.At)
		}
	}
	return weights, at
}

// noContention checks that nothing of a rollout's record tells of another writer.
func (w *world) noContention(name string) {
	w.t.Helper()
	if c := w.get(name).Status.Contention; c != nil {
		w.t.Errorf("%s: there is contention: %+v", name, c)
	}
	if notes := w.events(name, v1alpha1.ReasonDrift); len(notes) > 0 {
		w.t.Errorf("%s: the weights were changed: %q", name, notes)
	}
}

// wantAsInGit checks that the route web differs from what is in git in the ignored fields
// and our one annotation only.
func (g *gitOpsTool) wantAsInGit(forget forgetting) {
	g.w.t.Helper()
	diff, live, err := g.difference(g.w.t.Context(), g.git.DeepCopy(), forget)
	if err != nil {
		g.w.t.Fatal(err)
	}
	if diff != "" {
		g.w.t.Errorf("the route differs from git (-cluster +git):\n%s", diff)
	}
	if !maps.Equal(live.GetLabels(), g.git.GetLabels()) {
		g.w.t.Errorf("the labels are %v, and in git %v", live.GetLabels(), g.git.GetLabels())
	}
	want := g.git.GetAnnotations()
	want[v1alpha1.ManagedByAnnotation] = "web"
	if diff := cmp.Diff(want, live.GetAnnotations()); diff != "" {
		g.w.t.Errorf("the annotations are others than git's and ours (-want +cluster):\n%s", diff)
	}
}

// rulesNow are what addRule changes: the names of all rules, and the matches of the one for
// testers.
func rulesNow(o *unstructured.Unstructured) (names, testers []any) {
	for _, rule := range rulesOf(o) {
		names = append(names, rule.(map[string]any)["name"])
	}
	return names, rulesOf(o)[1].(map[string]any)["matches"].([]any)
}

// TestC25ToolReassertsStable: a tool that keeps writing 100/0 is written over five times,
// each time after a longer wait, and then has its way. The rollout says who it is, and
// goes on when the tool has stopped and a person says so.
func TestC25ToolReassertsStable(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	tool := w.newTool("blind-sync", foreignRoute(w.namespace, "web"))
	tool.mustOnce()
	w.rolloutFor("web", stages("1s", "10", "50"), soak(0, "10s"))
	w.startManager()
	w.awaitShare("web", "10")
	tool.start()
	wr := w.await("web", "Stalled by contention", func(wr *v1alpha1.WeightedRollout) bool {
		return isStalled(wr, v1alpha1.ReasonWeightContention, "blind-sync")
	})
	if c := wr.Status.Contention; c == nil || c.Count != 6 || c.Manager != "blind-sync" {
		t.Errorf("status.contention is %+v", c)
	}
	w.awaitEvent("web", v1alpha1.ReasonWeightContention, "blind-sync")

	weights, at := w.acceptedWrites(0)
	// The tool may come between a write and its confirmation, which is then not counted.
	if n := len(weights); n < 6 || n > 12 {
		t.Errorf("the share was raised %d times before, want 6: %v", n, weights)
	}
	var waits []time.Duration
	for i := 1; i < len(at); i++ {
		waits = append(waits, at[i].Sub(at[i-1]))
	}
	slices.Sort(waits)
	slices.Reverse(waits)
	for i, least := range []time.Duration{16 * time.Second, 8 * time.Second, 4 * time.Second, 2 * time.Second} {
		if i >= len(waits) || waits[i] < least {
			t.Errorf("the waits between two raises were %v, want one of at least %s", waits, least)
		}
	}

	from := w.api.count()
	tool.awaitSyncs(5)
	if more, _ := w.acceptedWrites(from); len(more) > 0 {
		t.Errorf("the route is written in spite of the contention: %v", more)
	}
	if wr := w.get("web"); wr.Status.Outcome != v1alpha1.OutcomeInProgress || desired(wr) != "0" {
		t.Errorf("the contention moved the rollout: %s", summary(wr))
	}
	tool.stop()
	w.command("web", v1alpha1.VerbResume)
	wr = w.awaitPhase("web", v1alpha1.PhasePromoted)
	if wr.Status.Contention != nil {
		t.Errorf("status.contention is left: %+v", wr.Status.Contention)
	}
	weights, _ = w.acceptedWrites(from)
	if want := []pair{{90, 10}, {60, 40}, {50, 50}, {20, 80}, {0, 100}}; !slices.Equal(weights, want) {
		t.Errorf("after the resume the writes were %v, want %v", weights, want)
	}
}

// TestC25ToolWithoutWeights: a tool that applies a route without weights writes 1/1. It is
// written over, at last once a minute, never by a raise; and a rollback happens in the
// middle of it.
func TestC25ToolWithoutWeights(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	git := foreignRoute(w.namespace, "web")
	tool := w.newTool("no-weights", git)
	tool.mustOnce()
	for _, ref := range backendRefs(git) {
		delete(ref.(map[string]any), "weight")
	}
	w.rolloutFor("web", stages("10m", "10"))
	w.startManager()
	w.awaitShare("web", "10")
	tool.start()
	w.await("web", "Stalled by contention", func(wr *v1alpha1.WeightedRollout) bool {
		return isStalled(wr, v1alpha1.ReasonWeightContention, "no-weights")
	})
	tool.awaitSyncs(3)
	eventually(t, "the weights of the tool", func() (bool, string) {
		now := w.weightsNow("web")
		return now == pair{1, 1}, now.String()
	})
	weights, _ := w.acceptedWrites(0)
	// One raise, six settings back, and those that the tool came too early for.
	if n := len(weights); n < 7 || n > 13 {
		t.Errorf("the route was written %d times, want 7: %v", n, weights)
	}
	for _, p := range weights {
		if p != (pair{90, 10}) {
			t.Errorf("a write other than that of the record's 10 percent: %v", weights)
		}
	}

	w.edit("web", func(wr *v1alpha1.WeightedRollout) {
		metav1.SetMetaDataAnnotation(&wr.ObjectMeta, v1alpha1.AbortAnnotation, "1")
	})
	w.awaitPhase("web", v1alpha1.PhaseRolledBack)
	// The rollback is written at once, whatever the tool does, and has its own six settings
	// back. Then the pace is a minute.
	w.await("web", "Stalled by contention once more", func(wr *v1alpha1.WeightedRollout) bool {
		return isStalled(wr, v1alpha1.ReasonWeightContention, "stable is given all traffic again once a minute at most")
	})
	tool.awaitSyncs(3)
	tool.stop()
	eventually(t, "all traffic at stable", func() (bool, string) {
		now := w.weightsNow("web")
		return now == pair{100, 0}, now.String()
	})
	before := len(weights)
	weights, at := w.acceptedWrites(0)
	n := len(weights)
	for _, p := range weights[before:] {
		if p != (pair{100, 0}) {
			t.Errorf("a write other than the rollback's, after it: %v", weights)
		}
	}
	if after := n - before; after < 7 || after > 14 {
		t.Errorf("the rollback was written %d times, want 8: %v", after, weights)
	}
	if wait := at[n-1].Sub(at[n-2]); wait < 50*time.Second {
		t.Errorf("the last two writes were %s apart, want a minute: %v", wait, weights)
	}
	if wr := w.get("web"); wr.Status.Outcome != v1alpha1.OutcomeRolledBack {
		t.Errorf("not rolled back: %s", summary(wr))
	}
}

// TestC25ArgoCDRespecting: with RespectIgnoreDifferences=true the tool disturbs nothing.
// Hostnames arrive. Rules do not, until the route is synced once without the option, when
// stable serves everything.
func TestC25ArgoCDRespecting(t *testing.T) {
	w := newWorld(t)
	r := readRecipes(t)
	tool := w.newTool("argocd-controller", foreignRoute(w.namespace, "web"))
	tool.mustOnce()
	tool.argoCD(r, true)
	w.rolloutFor("web", soak(2, "10m"))
	tool.start()
	w.startManager()
	w.awaitShare("web", "10")
	w.wantOwnersOfRules("weightedrollout")
	before, _ := rulesNow(w.rawRoute("web"))
	tool.commit(addHostname)
	tool.commit(addRule)
	tool.awaitSyncs(3)
	live := w.rawRoute("web")
	if hosts, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "hostnames"); !slices.Contains(hosts, "www.example.com") {
		t.Errorf("the hostname of git did not arrive: %q", hosts)
	}
	if names, testers := rulesNow(live); !slices.Equal(names, before) || len(testers) != 1 {
		t.Errorf("rules of git arrived, though the page says that they do not: %v, %v", names, testers)
	}
	w.command("web", v1alpha1.VerbPromote)
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", planOfWeb...)
	w.command("web", v1alpha1.VerbFinish)
	w.awaitPhase("web", v1alpha1.PhaseCompleted)
	w.noContention("web")
	tool.stop()

	had := w.routes.of("web")
	tool.argoCD(r, false)
	tool.mustOnce()
	tool.wantAsInGit(r.argoCDForgets)
	if _, testers := rulesNow(w.rawRoute("web")); len(testers) != 2 {
		t.Errorf("the match of git did not arrive: %v", testers)
	}
	if now := w.routes.of("web"); !slices.Equal(now, had) {
		t.Errorf("the sync without the option moved the weights: %v", now)
	}
}

// wantOwnersOfRules checks that the API server knows one owner of the route's rules, which
// has them as a whole.
func (w *world) wantOwnersOfRules(managers ...string) {
	w.t.Helper()
	var owners []string
	for _, f := range w.rawRoute("web").GetManagedFields() {
		if f.Subresource == "" && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:rules":{}`) {
			owners = append(owners, f.Manager)
		}
	}
	if !slices.Equal(owners, managers) {
		w.t.Errorf("the rules as a whole are owned by %q, want %q", owners, managers)
	}
}

// TestC25ArgoCDNotRespecting: without RespectIgnoreDifferences=true a rollout is disturbed
// only by a change of the route in git, which arrives at once and with git's weights.
func TestC25ArgoCDNotRespecting(t *testing.T) {
	w := newWorld(t)
	w.loose = true
	r := readRecipes(t)
	tool := w.newTool("argocd-controller", foreignRoute(w.namespace, "web"))
	tool.mustOnce()
	tool.argoCD(r, false)
	w.rolloutFor("web", soak(2, "10m"))
	tool.start()
	w.startManager()
	before := w.awaitShare("web", "10")
	tool.commit(addRule)
	after := w.await("web", "10 percent again", func(wr *v1alpha1.WeightedRollout) bool {
		c := wr.Status.Share.ConfirmedAt
		return desired(wr) == "10" && c != nil && c.After(before.Status.Share.ConfirmedAt.Time)
	})
	if after.Status.Attempt != before.Status.Attempt || after.Status.Stage.Index != before.Status.Stage.Index {
		t.Errorf("the change in git moved the rollout from %+v to %+v", before.Status.Stage, after.Status.Stage)
	}
	tool.awaitSyncs(2)
	w.command("web", v1alpha1.VerbPromote)
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	tool.stop()
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10", "100/0", "90/10", "80/20", "50/50", "20/80", "0/100")
	tool.wantAsInGit(r.argoCDForgets)
	if _, applied := tool.counts(); applied != 2 {
		t.Errorf("the tool applied the route %d times, want at first and for the change in git", applied)
	}
}

// TestC25Flux: with the recipe for a Kustomization a rollout is not disturbed at all, and
// what changes in git arrives while it runs.
func TestC25Flux(t *testing.T) {
	w := newWorld(t)
	r := readRecipes(t)
	tool := w.newTool("kustomize-controller", foreignRoute(w.namespace, "web"))
	tool.mustOnce()
	tool.flux(r)
	w.rolloutFor("web", soak(2, "10m"))
	tool.start()
	w.startManager()
	w.awaitShare("web", "10")
	tool.commit(addHostname)
	tool.commit(addRule)
	eventually(t, "the rules of git", func() (bool, string) {
		names, testers := rulesNow(w.rawRoute("web"))
		return len(names) == 4 && len(testers) == 2, cmp.Diff(nil, names)
	})
	tool.awaitSyncs(2)
	w.command("web", v1alpha1.VerbPromote)
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	tool.stop()
	w.wantWeights("web", planOfWeb...)
	w.noContention("web")
	tool.wantAsInGit(r.kustomizeForgets)
	if syncs, applied := tool.counts(); syncs < 3 || applied < 2 || applied > 3 {
		t.Errorf("the tool applied the route %d times, want at first and for each change in git", applied)
	}
}

// TestC25FluxIfNotPresent: a route that the tool only creates is left alone.
func TestC25FluxIfNotPresent(t *testing.T) {
	w := newWorld(t)
	tool := w.newTool("kustomize-controller", foreignRoute(w.namespace, "web"))
	always := tool.sync
	tool.sync = func(ctx context.Context, git *unstructured.Unstructured) (bool, error) {
		if len(w.routes.versions("web")) > 0 {
			return false, nil
		}
		return always(ctx, git)
	}
	tool.start()
	eventually(t, "the route", func() (bool, string) { return len(w.routes.versions("web")) > 0, "none" })
	w.rolloutFor("web", stages("1s", "10", "50"))
	w.startManager()
	tool.commit(addRule)
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	tool.awaitSyncs(1)
	w.wantWeights("web", "100/0", "90/10", "60/40", "50/50", "20/80", "0/100")
	w.onlyWeightsChange("web")
	if names, _ := rulesNow(w.rawRoute("web")); len(names) != 3 {
		t.Errorf("a rule of git arrived, though the page says that it does not: %v", names)
	}
}
