package route

import "slices"

// Backends returns every port of a Service that a route sends to, each once.
func (o *Object) Backends() []Backend {
	if o == nil {
		return nil
	}
	var all []Backend
	for _, rule := range o.Rules {
		for _, ref := range rule.Backends {
			if b, ok := backendOf(ref.BackendObjectReference, o.Namespace); ok && !slices.Contains(all, b) {
				all = append(all, b)
			}
		}
	}
	return all
}

// Crossing returns the index of the first rule of a route that sends to one of the two
// backends, with a weight, and is none of the managed ones; -1 if there is none.
func (o *Object) Crossing(pair Pair, managed []ManagedRule) int {
	if o == nil {
		return -1
	}
	stable, canary := pair.Stable.in(o.Namespace), pair.Canary.in(o.Namespace)
	for i, rule := range o.Rules {
		if slices.ContainsFunc(managed, func(m ManagedRule) bool { return m.Index == i }) {
			continue
		}
		for _, ref := range rule.Backends {
			b, ok := backendOf(ref.BackendObjectReference, o.Namespace)
			if ok && (b == stable || b == canary) && weightOf(ref) > 0 {
				return i
			}
		}
	}
	return -1
}
