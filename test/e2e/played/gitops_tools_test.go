package played

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// syncEvery is how often a played tool compares the cluster with git.
const syncEvery = 2 * time.Second

// gitOpsTool plays a tool that brings one route from git to the cluster, as field manager
// of its own and by server-side apply with force.
type gitOpsTool struct {
	w       *world
	manager string
	// sync does what the tool does about a difference. It returns whether it applied
	// anything.
	sync func(ctx context.Context, git *unstructured.Unstructured) (bool, error)

	mu      sync.Mutex
	git     *unstructured.Unstructured
	syncs   int // since git changed last
	applied int
	end     context.CancelFunc
	running sync.WaitGroup
}

// newTool prepares a tool that applies what is in git, whatever there is in the cluster.
func (w *world) newTool(manager string, git *unstructured.Unstructured) *gitOpsTool {
	g := &gitOpsTool{w: w, manager: manager, git: git}
	g.sync = func(ctx context.Context, git *unstructured.Unstructured) (bool, error) {
		return true, g.apply(ctx, git)
	}
	return g
}

// apply applies an object, which then holds what the API server made of it.
func (g *gitOpsTool) apply(ctx context.Context, o *unstructured.Unstructured, opts ...client.ApplyOption) error {
	opts = append(opts, client.ForceOwnership, client.FieldOwner(g.manager))
	return g.w.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), opts...)
}

// once syncs once.
func (g *gitOpsTool) once(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	applied, err := g.sync(ctx, g.git.DeepCopy())
	if apierrors.IsConflict(err) {
		// The controller wrote in between. The next sync will see it.
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", g.manager, err)
	}
	g.syncs++
	if applied {
		g.applied++
	}
	return nil
}

// mustOnce is once for the test itself.
func (g *gitOpsTool) mustOnce() {
	g.w.t.Helper()
	if err := g.once(g.w.t.Context()); err != nil {
		g.w.t.Fatal(err)
	}
}

// start syncs from now on, until stop.
func (g *gitOpsTool) start() {
	ctx, cancel := context.WithCancel(g.w.t.Context())
	g.end = cancel
	g.running.Go(func() {
		tick := time.NewTicker(syncEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			// Not ctx: a sync must not be given up when it may have arrived already.
			if err := g.once(context.WithoutCancel(ctx)); err != nil {
				g.w.t.Error(err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	g.w.t.Cleanup(g.stop)
}

func (g *gitOpsTool) stop() {
	g.end()
	g.running.Wait()
}

// commit changes what is in git.
func (g *gitOpsTool) commit(change func(*unstructured.Unstructured)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g.git)
	g.syncs = 0
}

func (g *gitOpsTool) counts() (syncs, applied int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.syncs, g.applied
}

// awaitSyncs waits until the tool has synced n more times.
func (g *gitOpsTool) awaitSyncs(n int) {
	g.w.t.Helper()
	from, _ := g.counts()
	eventually(g.w.t, fmt.Sprintf("%d more syncs", n), func() (bool, string) {
		now, _ := g.counts()
		return now >= from+n, fmt.Sprintf("%d syncs since there were %d", now, from)
	})
}

// difference returns how the cluster will differ after the apply of git from now, but for
// what is to be forgotten, and the live route.
func (g *gitOpsTool) difference(ctx context.Context, git *unstructured.Unstructured, forget forgetting) (string, *unstructured.Unstructured, error) {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(git.GroupVersionKind())
	if err := g.w.client.Get(ctx, client.ObjectKeyFromObject(git), live); err != nil {
		return "", nil, err
	}
	predicted := git.DeepCopy()
	if err := g.apply(ctx, predicted, client.DryRunAll); err != nil {
		return "", nil, err
	}
	sides := []*unstructured.Unstructured{live.DeepCopy(), predicted}
	for _, side := range sides {
		for _, field := range []string{"resourceVersion", "generation", "managedFields"} {
			unstructured.RemoveNestedField(side.Object, "metadata", field)
		}
		unstructured.RemoveNestedField(side.Object, "status")
		if err := forget(side.Object); err != nil {
			return "", nil, err
		}
	}
	return cmp.Diff(sides[0].Object, sides[1].Object), live, nil
}

// bindTo lets an apply fail if the route has changed since it was read. The tools do not
// do this: they could overwrite a newer share by an older one, and the test would depend
// on chance.
func bindTo(o, live *unstructured.Unstructured) *unstructured.Unstructured {
	o.SetResourceVersion(live.GetResourceVersion())
	return o
}

// argoCD makes the tool follow the page's recipe for Argo CD, with or without
// RespectIgnoreDifferences=true. A route that is Synced is not applied.
func (g *gitOpsTool) argoCD(r recipes, respect bool) {
	g.sync = func(ctx context.Context, git *unstructured.Unstructured) (bool, error) {
		diff, live, err := g.difference(ctx, git, r.argoCDForgets)
		if err != nil || diff == "" {
			return false, err
		}
		if respect {
			unstructured.RemoveNestedField(live.Object, "status")
			if git.Object, err = r.respectArgoCD(git.Object, live.Object); err != nil {
				return false, err
			}
		}
		return true, g.apply(ctx, bindTo(git, live))
	}
}

// flux makes the tool follow the page's recipe for a Kustomization.
func (g *gitOpsTool) flux(r recipes) {
	g.sync = func(ctx context.Context, git *unstructured.Unstructured) (bool, error) {
		diff, live, err := g.difference(ctx, git, r.kustomizeForgets)
		if err != nil || diff == "" {
			return false, err
		}
		if err := r.adoptLive(git.Object, live.Object); err != nil {
			return false, err
		}
		return true, g.apply(ctx, bindTo(git, live))
	}
}

// rulesOf and the others read and change a route that is full of foreign things.
func rulesOf(o *unstructured.Unstructured) []any {
	return o.Object["spec"].(map[string]any)["rules"].([]any)
}

func setRules(o *unstructured.Unstructured, rules []any) {
	o.Object["spec"].(map[string]any)["rules"] = rules
}

func backendRefs(o *unstructured.Unstructured) []any {
	return rulesOf(o)[0].(map[string]any)["backendRefs"].([]any)
}

func setWeights(o *unstructured.Unstructured, stable, canary int64) {
	backendRefs(o)[0].(map[string]any)["weight"] = stable
	backendRefs(o)[1].(map[string]any)["weight"] = canary
}

// addRule adds a rule behind the others, and a match to the rule for testers.
func addRule(o *unstructured.Unstructured) {
	rules := slices.Clone(rulesOf(o))
	rules[1].(map[string]any)["matches"] = []any{
		map[string]any{"headers": []any{map[string]any{"name": "x-canary", "value": "yes"}}},
		map[string]any{"headers": []any{map[string]any{"name": "x-team", "value": "shop"}}},
	}
	setRules(o, append(rules, map[string]any{
		"name":        "images",
		"matches":     []any{map[string]any{"path": map[string]any{"type": "PathPrefix", "value": "/images"}}},
		"backendRefs": []any{map[string]any{"name": "assets", "port": int64(8080), "weight": int64(1)}},
	}))
}

// addHostname adds a hostname.
func addHostname(o *unstructured.Unstructured) {
	spec := o.Object["spec"].(map[string]any)
	spec["hostnames"] = append(slices.Clone(spec["hostnames"].([]any)), "www.example.com")
}
