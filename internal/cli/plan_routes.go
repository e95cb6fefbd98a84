package cli

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/cli/schedule"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// routes inspects the rollout's routes as far as the file holds them.
func (i *input) routes() map[string]route.Inspection {
	found := map[string]route.Inspection{}
	for _, ref := range i.rollout.Spec.Routes {
		shown := route.FromHTTPRoute(i.file.HTTPRoute(i.rollout.Namespace, ref.Name))
		if ref.Kind == v1alpha1.GRPCRouteKind {
			shown = route.FromGRPCRoute(i.file.GRPCRoute(i.rollout.Namespace, ref.Name))
		}
		if inspected, ok := i.inspect(shown, ref.RuleNames); ok {
			found[schedule.RouteKey(ref)] = inspected
		}
	}
	return found
}

// inspect looks for the rules of a route that hold both backends of the rollout; ok is
// false where there is no route, or there are no backends.
func (i *input) inspect(shown *route.Object, ruleNames []string) (found route.Inspection, ok bool) {
	spec := &i.rollout.Spec
	if shown == nil || spec.Stable == nil || spec.Canary == nil {
		return found, false
	}
	shown.Namespace = cmp.Or(shown.Namespace, i.rollout.Namespace, metav1.NamespaceDefault)
	return route.Inspect(shown, ruleNames, route.Pair{
		Stable: route.Backend{Namespace: spec.Stable.Namespace, Service: spec.Stable.Service, Port: spec.Stable.Port},
		Canary: route.Backend{Namespace: spec.Canary.Namespace, Service: spec.Canary.Service, Port: spec.Canary.Port},
	}), true
}

// files are all files at hand, that of the rollout first.
func (i *input) files() []*manifest.File { return append([]*manifest.File{i.file}, i.others...) }

// unlike returns the names in the rollout's references of which the files hold a
// GRPCRoute and no HTTPRoute, and those of which they hold no route at all.
func (i *input) unlike() (grpcOnly, absent []string) {
	for _, ref := range i.rollout.Spec.Routes {
		http, grpc := false, false
		for _, f := range i.files() {
			http = http || f.HTTPRoute(i.rollout.Namespace, ref.Name) != nil
			grpc = grpc || f.GRPCRoute(i.rollout.Namespace, ref.Name) != nil
		}
		switch {
		case grpc && !http:
			grpcOnly = append(grpcOnly, ref.Name)
		case !grpc && !http:
			absent = append(absent, ref.Name)
		}
	}
	return grpcOnly, absent
}

// holders returns the routes in the files that hold both backends, without those that
// have the name of one that the rollout refers to.
func (i *input) holders() []string {
	var all []string
	look := func(r *route.Object) {
		named := func(ref v1alpha1.RouteReference) bool { return ref.Name == r.Name }
		title := fmt.Sprintf("%s %q", r.Kind, r.Name)
		if slices.ContainsFunc(i.rollout.Spec.Routes, named) || slices.Contains(all, title) {
			return
		}
		if found, ok := i.inspect(r, nil); ok && len(found.Rules) > 0 {
			all = append(all, title)
		}
	}
	for _, f := range i.files() {
		for _, r := range f.HTTPRoutes(i.rollout.Namespace) {
			look(route.FromHTTPRoute(r))
		}
		for _, r := range f.GRPCRoutes(i.rollout.Namespace) {
			look(route.FromGRPCRoute(r))
		}
	}
	return all
}
