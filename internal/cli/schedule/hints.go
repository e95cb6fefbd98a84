package schedule

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// warnOfKinds looks for references to an HTTPRoute where only a GRPCRoute of the name is
// at hand.
func warnOfKinds(routes []v1alpha1.RouteReference, grpc []string, add adder) {
	for i, ref := range routes {
		if kindOf(ref) == v1alpha1.HTTPRouteKind && slices.Contains(grpc, ref.Name) {
			add(fmt.Sprintf("spec.routes[%d].kind", i), "%q is a GRPCRoute in the files, and kind is HTTPRoute unless it is set: set kind: GRPCRoute", ref.Name)
		}
	}
}

// warnOfNames looks for references to a route that is not at hand, where another one is
// that holds both backends: one of the two names is likely to be misspelt.
func warnOfNames(routes []v1alpha1.RouteReference, o Options, add adder) {
	if len(o.Holders) == 0 {
		return
	}
	for i, ref := range routes {
		if slices.Contains(o.Absent, ref.Name) {
			add(fmt.Sprintf("spec.routes[%d].name", i), "no route %q is in the files, and %s there holds both backends: correct the name, unless that route is none of this rollout", ref.Name, strings.Join(o.Holders, ", "))
		}
	}
}

// warnOfTracks looks for a stable and a canary that are the same pods.
func warnOfTracks(wr *v1alpha1.WeightedRollout, add adder) {
	stable, canary := wr.Spec.Stable, wr.Spec.Canary
	if stable == nil || canary == nil {
		return
	}
	if stable.Service == canary.Service && cmp.Or(stable.Namespace, wr.Namespace) == cmp.Or(canary.Namespace, wr.Namespace) {
		add("spec.canary.service", "stable and canary are two ports of one Service, %q, so the same pods serve both: give the canary a Service of its own, which selects its pods only", canary.Service)
	}
	if a, b := stable.Workload, canary.Workload; a != nil && b != nil && named(a) == named(b) {
		add("spec.canary.workload", "stable and canary name the same %s %q, so both are the same pods and of one version: name what runs the canary's pods", kindOfWorkload(b), b.Name)
	}
}

// named is what tells two workloads apart.
func named(w *v1alpha1.WorkloadReference) v1alpha1.WorkloadReference {
	return v1alpha1.WorkloadReference{APIVersion: cmp.Or(w.APIVersion, "apps/v1"), Kind: kindOfWorkload(w), Name: w.Name}
}

func kindOfWorkload(w *v1alpha1.WorkloadReference) string { return cmp.Or(w.Kind, "Deployment") }

// warnOfGRPC looks for a preset that cannot tell how most gRPC requests ended.
func warnOfGRPC(spec *v1alpha1.WeightedRolloutSpec, add adder) {
	if spec.Health == nil || spec.Health.Disabled || spec.Health.Preset != v1alpha1.PresetTraefik {
		return
	}
	for _, ref := range spec.Routes {
		if kindOf(ref) == v1alpha1.GRPCRouteKind {
			add("spec.health.preset", "Traefik takes the status of a gRPC response from its headers, or from trailers that the server announces. Of a server that announces none, such as those of grpc-go, every success comes as code 2, and the verdict stays Unknown: set preset: Pods, unless the server behind GRPCRoute %q announces its trailers", ref.Name)
			return
		}
	}
}

var (
	// literals are the strings of PromQL.
	literals = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`")
	// signed are the functions whose value can be below 0, whatever the metric.
	signed = regexp.MustCompile(`\b(?:deriv|delta|idelta|predict_linear|ln|log2|log10)\s*\(`)
	// minus finds a difference, and what stands before it.
	minus = regexp.MustCompile(`(\S+)\s+-\s`)
)

// warnOfChecks looks for checks whose value can be below 0 though no limit says so.
func (p *plan) warnOfChecks(h *v1alpha1.Health, add adder) {
	for i, k := range p.health.Checks {
		if !k.Signed() && h != nil && i < len(h.Checks) && differs(h.Checks[i].Query) {
			add(fmt.Sprintf("spec.health.checks[%d].min", i), "the query of the check %s can give a value below 0, which without min says nothing (Unknown) and holds the share: set min to the lowest acceptable value, such as -1000", k.Name)
		}
	}
}

// differs reports whether a query shows that its value can be below 0. A part of the whole
// is often written as 1 or 100 less another.
func differs(query string) bool {
	query = literals.ReplaceAllString(query, `""`)
	if signed.MatchString(query) {
		return true
	}
	return slices.ContainsFunc(minus.FindAllStringSubmatch(query, -1), func(m []string) bool {
		before := strings.TrimLeft(m[1], "(")
		return before != "1" && before != "100"
	})
}
