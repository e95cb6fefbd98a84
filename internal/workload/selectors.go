package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exchange says, for the key of a label, which values are replaced where a label
// selector asks for one of them.
type exchange map[string]replacement

type replacement struct {
	from []string
	to   string
}

// translation replaces one template's own labels by those of another, wherever both
// have the label.
func translation(from, to map[string]string) exchange {
	e := exchange{}
	for key, value := range from {
		if other, ok := to[key]; ok {
			e[key] = replacement{from: []string{value}, to: other}
		}
	}
	return e
}

// shared replaces the own labels of either template by one that stands for both,
// wherever both have the label.
func shared(a, b map[string]string) exchange {
	e := exchange{}
	for key, value := range a {
		if other, ok := b[key]; ok {
			e[key] = replacement{from: []string{value, other}, to: min(value, other)}
		}
	}
	return e
}

// relabel replaces values in the label selectors by which a pod spec refers to pods of
// its own namespace: those of topology spread and of affinity to pods. It changes the
// spec. A selector for pods of other namespaces is left, since the labels there are not
// the templates' own.
func relabel(spec *corev1.PodSpec, e exchange) {
	for i := range spec.TopologySpreadConstraints {
		e.apply(spec.TopologySpreadConstraints[i].LabelSelector)
	}
	if spec.Affinity == nil {
		return
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		e.applyToTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		e.applyToTerms(a.RequiredDuringSchedulingIgnoredDuringExecution, a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

func (e exchange) applyToTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
	apply := func(term *corev1.PodAffinityTerm) {
		if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
			e.apply(term.LabelSelector)
		}
	}
	for i := range required {
		apply(&required[i])
	}
	for i := range preferred {
		apply(&preferred[i].PodAffinityTerm)
	}
}

func (e exchange) apply(s *metav1.LabelSelector) {
	if s == nil {
		return
	}
	for key, value := range s.MatchLabels {
		if x, ok := e[key]; ok && slices.Contains(x.from, value) {
			s.MatchLabels[key] = x.to
		}
	}
	for i := range s.MatchExpressions {
		m := &s.MatchExpressions[i]
		x, ok := e[m.Key]
		if !ok {
			continue
		}
		// One that names both versions means both.
		var own []int
		for j, value := range m.Values {
			if value == x.to || slices.Contains(x.from, value) {
				own = append(own, j)
			}
		}
		if len(own) == 1 {
			m.Values[own[0]] = x.to
		}
	}
}
