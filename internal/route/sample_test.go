package route_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/weights"
)

// sample is a route as the API server stores it, with what is known of it without
// looking at it through our types.
type sample struct {
	doc       []byte
	pair      route.Pair
	ruleNames []string
	// managed are the rules that hold both backends of the pair once.
	managed []holding
	// refused is the reason of the problem that the route has, or is empty.
	refused string
}

// holding says where a rule holds the pair.
type holding struct {
	Rule   int `json:"rule"`
	Stable int `json:"stable"`
	Canary int `json:"canary"`
}

// finer are shares that need more than whole points.
var finer = []weights.Share{1, 50, percent(1), percent(5), percent(10), 1234, percent(20), 3333, percent(50), 9999, percent(100)}

// walk takes the route through the shares, back to 0 from each of them, and out of our
// hands from each of them, and checks every document on the way. It counts the writes.
func (s sample) walk(t fataler, shares []weights.Share) (writes int) {
	t.Helper()
	s.checkInspection(t, s.doc)
	now := s.write(t, s.doc, weights.ShareNone)
	for _, share := range shares {
		if !s.mayRaise(t, now, share) {
			continue
		}
		now = s.write(t, now, share)
		writes++
		back := s.write(t, now, weights.ShareNone)
		s.release(t, back, nil)
		s.release(t, now, nil)
		none := weights.ShareNone
		s.release(t, now, &none)
		if s.mayRaise(t, s.doc, share) {
			s.write(t, s.doc, share)
		}
	}
	return writes
}

// checkInspection compares what is found with what is known.
func (s sample) checkInspection(t fataler, doc []byte) {
	t.Helper()
	i := route.Inspect(decode(t, doc), s.ruleNames, s.pair)
	var found []holding
	for _, m := range i.Rules {
		found = append(found, holding{m.Index, m.StableRef, m.CanaryRef})
	}
	reason := ""
	if i.Problem != nil {
		reason = i.Problem.Reason
		if kind := decode(t, doc).String(); !strings.Contains(i.Problem.Message, kind) {
			t.Fatalf("the problem does not say that it is about %s: %s", kind, i.Problem.Message)
		}
	}
	if diff := cmp.Diff(s.managed, found); diff != "" || reason != s.refused {
		t.Fatalf("refused for %q, want %q; managed rules (-want +got):\n%s", reason, s.refused, diff)
	}
}

// mayRaise tells whether the share can be written. A route with a problem is never
// raised, nor is one whose weights are too coarse; both must be said.
func (s sample) mayRaise(t fataler, doc []byte, share weights.Share) bool {
	t.Helper()
	coarse := false
	for _, w := range s.weightsIn(t, doc) {
		pair := w.stable + w.canary
		if w.others < 0 || pair+w.others == 0 {
			continue
		}
		coarse = coarse || pair > route.MaxWeight || pair*int64(share) < int64(weights.ShareAll)
	}
	i := route.Inspect(decode(t, doc), s.ruleNames, s.pair)
	if p := i.Express(share); (p != nil) != coarse {
		t.Fatalf("%s is too coarse: %v, but the problem is %v", share, coarse, p)
	}
	return !coarse && s.refused == ""
}

// write patches the raw document for a share and checks what became of it.
func (s sample) write(t fataler, before []byte, share weights.Share) []byte {
	t.Helper()
	r := decode(t, before)
	i := route.Inspect(r, s.ruleNames, s.pair)
	patch, err := i.Patch(r, share, owner)
	if err != nil {
		t.Fatalf("patch for %s: %v", share, err)
	}
	if len(s.managed) == 0 {
		if patch != nil {
			t.Fatalf("nothing is managed, but there is a patch: %s", patch)
		}
		return before
	}
	after := before
	if patch != nil {
		after = apply(t, before, patch)
	}
	s.checkInspection(t, after)
	s.checkUntouched(t, after)
	was, is := s.weightsIn(t, before), s.weightsIn(t, after)
	for n, h := range s.managed {
		checkWeights(t, h, share, was[n], is[n])
	}
	r = decode(t, after)
	want := append(s.otherOwners(t), owner)
	slices.Sort(want)
	if diff := cmp.Diff(want, route.Owners(r)); diff != "" {
		t.Fatalf("owners (-want +got):\n%s", diff)
	}
	if again, err := route.Inspect(r, s.ruleNames, s.pair).Patch(r, share, owner); again != nil || err != nil {
		t.Fatalf("a second patch for %s: %s, %v", share, again, err)
	}
	return after
}

// release takes a written document out of our hands.
func (s sample) release(t fataler, before []byte, share *weights.Share) {
	t.Helper()
	r := decode(t, before)
	patch, err := route.Inspect(r, s.ruleNames, s.pair).Release(r, share, owner)
	if err != nil {
		t.Fatalf("release: %v", err)
	}
	after := before
	if patch != nil {
		after = apply(t, before, patch)
	}
	s.checkUntouched(t, after)
	was, is := s.weightsIn(t, before), s.weightsIn(t, after)
	for n, h := range s.managed {
		if share != nil {
			checkWeights(t, h, *share, was[n], is[n])
		} else if was[n] != is[n] {
			t.Fatalf("released with the weights %+v, but they were %+v", is[n], was[n])
		}
	}
	if diff := cmp.Diff(s.otherOwners(t), route.Owners(decode(t, after))); diff != "" {
		t.Fatalf("owners (-want +got):\n%s", diff)
	}
}

// otherOwners are the rollouts that the annotation named before ours did.
func (s sample) otherOwners(t fataler) []string {
	t.Helper()
	var others []string
	for _, name := range route.Owners(decode(t, s.doc)) {
		if name != owner {
			others = append(others, name)
		}
	}
	return others
}

// checkUntouched compares a document with the first one: nothing may differ but the
// weights of the pair and our annotation.
func (s sample) checkUntouched(t fataler, after []byte) {
	t.Helper()
	const ours = "/metadata/annotations/" + v1alpha1.ManagedByAnnotation
	allowed := map[string]bool{ours: true}
	for _, h := range s.managed {
		allowed[weightPath(h.Rule, h.Stable)], allowed[weightPath(h.Rule, h.Canary)] = true, true
	}
	for _, c := range changes(t, s.doc, after) {
		created := c == annotated || c == "/metadata/annotations: absent -> {}" || c == strings.Replace(annotated, "absent", "null", 1) || c == "/metadata/annotations: null -> {}"
		if !created && !allowed[pathOf(c)] {
			t.Fatalf("not ours, but changed: %s", c)
		}
	}
}

// ruleWeights are the weights of a managed rule as a gateway reads them.
type ruleWeights struct {
	stable, canary int64
	// others is the sum of all other weights, or -1 where there is no other backend.
	others int64
}

// weightsIn reads the weights of the managed rules from the raw document.
func (s sample) weightsIn(t fataler, doc []byte) []ruleWeights {
	t.Helper()
	top, _ := tree(t, doc).(map[string]any)
	spec, _ := top["spec"].(map[string]any)
	rules, _ := spec["rules"].([]any)
	var all []ruleWeights
	for _, h := range s.managed {
		if h.Rule >= len(rules) {
			t.Fatalf("there is no rule %d in %s", h.Rule, doc)
		}
		rule, _ := rules[h.Rule].(map[string]any)
		refs, _ := rule["backendRefs"].([]any)
		w := ruleWeights{others: -1}
		for i, ref := range refs {
			switch weight := weightIn(t, ref); i {
			case h.Stable:
				w.stable = weight
			case h.Canary:
				w.canary = weight
			default:
				w.others = max(w.others, 0) + weight
			}
		}
		all = append(all, w)
	}
	return all
}

// weightIn reads the weight of a raw backendRef.
func weightIn(t fataler, ref any) int64 {
	t.Helper()
	fields, _ := ref.(map[string]any)
	number, ok := fields["weight"].(json.Number)
	if !ok {
		return 1
	}
	weight, err := number.Int64()
	if err != nil || weight < 0 || weight > math.MaxInt32 {
		t.Fatalf("the weight %s: %v", number, err)
	}
	return weight
}

// checkWeights says what must hold of a rule that was written for a share.
func checkWeights(t fataler, h holding, share weights.Share, before, after ruleWeights) {
	t.Helper()
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("rule %d at %s, %+v, then %+v: %s", h.Rule, share, before, after, fmt.Sprintf(format, args...))
	}
	sum := after.stable + after.canary
	switch {
	case max(after.stable, after.canary) > route.MaxWeight:
		fail("a weight above %d", route.MaxWeight)
	case sum+max(after.others, 0) == 0:
		fail("no weight is left")
	case after.others != before.others:
		fail("the others' weights have changed")
	case after.canary*int64(weights.ShareAll) > int64(share)*sum:
		fail("the canary passes its share")
	}
	if before.others < 0 || before.stable+before.canary+before.others == 0 {
		if after.canary*int64(weights.ShareAll) != int64(share)*sum {
			fail("alone, the pair can have the share exactly")
		}
		if want := int64(100); share.Whole() && sum != want {
			fail("whole points need a sum of %d", want)
		}
		return
	}
	// The pair keeps its sum, so what the others have of the rule does not move at all.
	// A sum that no weight could carry is cut: by less than a weight each.
	if want := min(before.stable+before.canary, route.MaxWeight); sum != want {
		fail("the pair's sum must be %d", want)
	}
	if short := int64(share)*sum - after.canary*int64(weights.ShareAll); short >= int64(weights.ShareAll) {
		fail("the canary is more than a weight below its share")
	}
}
