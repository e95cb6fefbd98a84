package played

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// rollouts of a storm. Each has its own pair of backends, in one rule of one route.
var rollouts = []string{"red", "blue"}

// storm lets two rollouts write one route at the same moment, each time by a percent
// more, while another hand edits it between their reading and their writing, and while
// writes are refused, delayed, and left without an answer.
type storm struct {
	w      *world
	rounds int

	mu      sync.Mutex
	chance  *rand.Rand
	reached map[string]int  // the share that each rollout has tried to write
	hands   int             // edits that are still to come in this round
	refusal []int           // answers of the proxy that are still to come in this round
	lost    map[int]bool    // requests that get no answer
	edits   map[string]bool // resourceVersions that the other hand has made
	foreign int             // number of the last foreign rule
}

// TestTwoRolloutsOnOneRoute: two rollouts that name their rules.
func TestTwoRolloutsOnOneRoute(t *testing.T) { testStorm(t, 50, true) }

// TestTwoRolloutsWithoutRuleNames: two rollouts whose rules are told apart by their
// backends only.
func TestTwoRolloutsWithoutRuleNames(t *testing.T) { testStorm(t, 20, false) }

func testStorm(t *testing.T, rounds int, named bool) {
	w := newWorld(t)
	w.loose = true // both write one route; what they write is checked version by version
	s := &storm{
		w: w, rounds: rounds, chance: rand.New(rand.NewPCG(4, uint64(rounds))), reached: map[string]int{},
		lost: map[int]bool{}, edits: map[string]bool{},
	}
	route := newRoute(w.namespace, "web", nil, nil)
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{newRule("/static", newBackendRef("assets", ptr.To[int32](7)))}
	for _, name := range rollouts {
		stable, canary := pairOfRefs(name)
		rule := newRule("/"+name, stable, canary)
		if named {
			rule.Name = new(gatewayv1.SectionName(name))
		}
		route.Spec.Rules = append(route.Spec.Rules, rule)
		w.endpoints(name)
	}
	w.create(route)
	w.api.onRequest(s.before)
	w.api.onAnswer(s.after)
	for _, name := range rollouts {
		w.create(newRollout(w.namespace, name, w.prom.url(), ramp("1"), stages("10m", v1alpha1.Percent(fmt.Sprint(rounds))), func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Routes[0].Name = "web"
			if named {
				wr.Spec.Routes[0].RuleNames = []string{name}
			}
			// The storm is about writes: the gates of evidence have tests of their own.
			wr.Spec.Health = &v1alpha1.Health{Disabled: true, Window: "1s", Interval: "1s"}
		}))
	}
	began := time.Now()
	w.startManager()
	for share := 5; share <= rounds; share += 5 {
		for _, name := range rollouts {
			w.await(name, fmt.Sprintf("%d percent", share), func(wr *v1alpha1.WeightedRollout) bool {
				return number(string(desired(wr))) >= float64(share) && (share < rounds || wr.Status.Share.ConfirmedAt != nil)
			})
		}
	}
	took := time.Since(began)
	s.check()
	conflicts := w.api.since(0, func(r *request) bool { return r.isRouteWrite() && r.Code == http.StatusConflict })
	t.Logf("%d rounds in %.0f s: %d foreign edits, %d conflicts, %d answers lost", rounds, took.Seconds(), len(s.edits), len(conflicts), len(s.lost))
	if len(s.edits) < rounds || len(conflicts) < rounds || len(s.lost) == 0 {
		t.Error("that was no storm, so nothing is proved")
	}
}

// before steps in when the manager writes the route: the first write of a round waits
// for that of the other rollout, and then the other hand is faster than both.
func (s *storm) before(r *request) verdict {
	if !r.isRouteWrite() {
		return verdict{}
	}
	who, share := s.author(r)
	s.meet(who, share)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hands > 0 {
		s.hands--
		s.edit()
	}
	if n := len(s.refusal); n > 0 {
		code := s.refusal[n-1]
		s.refusal = s.refusal[:n-1]
		if code != 0 {
			return verdict{refuse: code}
		}
		s.lost[r.Number] = true
	}
	return verdict{}
}

// after tells whether the answer to a write is lost.
func (s *storm) after(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.isRouteWrite() && s.lost[r.Number]
}

// author tells whose write it is, and what share it writes.
func (s *storm) author(r *request) (who string, share int) {
	base, set := s.base(r), s.weightsOf(r)
	rules := base.rules()
	for index, weights := range set {
		if index >= len(rules) {
			break
		}
		who = ownerOf(rules[index])
		for ref, weight := range weights {
			if isCanary(rules[index], ref) {
				share = weight
			}
		}
	}
	if len(set) != 1 || who == "" {
		s.w.t.Errorf("request %d sets the weights of rules %v of version %s, want those of one managed rule", r.Number, set, base.GetResourceVersion())
	}
	return who, share
}

// base is the version of the route from which a write was computed.
func (s *storm) base(r *request) version {
	ops, err := r.operations()
	var want string
	if err == nil && len(ops) > 0 {
		err = json.Unmarshal(ops[0].Value, &want)
	}
	if err != nil {
		s.w.t.Errorf("request %d: %v", r.Number, err)
	}
	// The log may be a moment behind the manager.
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pollEvery / 10) {
		for _, v := range s.w.routes.versions("web") {
			if v.GetResourceVersion() == want {
				return version{v}
			}
		}
	}
	s.w.t.Errorf("request %d is based on version %q, which there never was", r.Number, want)
	return version{&unstructured.Unstructured{}}
}

func (s *storm) weightsOf(r *request) map[int]map[int]int {
	set, err := r.weights()
	if err != nil {
		s.w.t.Error(err)
	}
	return set
}

// meet lets the first write of a share wait until the other rollout writes it, too. The
// second of the two decides what happens in this round.
func (s *storm) meet(who string, share int) {
	s.mu.Lock()
	isNew := slices.Contains(rollouts, who) && share > s.reached[who]
	s.reached[who] = max(share, s.reached[who])
	if isNew && s.together(share) {
		s.hands = s.chance.IntN(5)
		s.refusal = [][]int{nil, {http.StatusConflict}, {http.StatusGatewayTimeout}, {0}}[s.chance.IntN(4)]
	}
	s.mu.Unlock()
	for deadline := time.Now().Add(patience); isNew; time.Sleep(pollEvery / 10) {
		s.mu.Lock()
		met := s.together(share)
		s.mu.Unlock()
		if met {
			return
		}
		if time.Now().After(deadline) {
			s.w.t.Errorf("%s writes %d percent, and the other one never did", who, share)
			return
		}
	}
}

func (s *storm) together(share int) bool {
	return !slices.ContainsFunc(rollouts, func(name string) bool { return s.reached[name] < share })
}

// edit is the other hand: it puts a rule of its own before the others, removes one,
// changes the order of the rules or of a rule's backends, or an annotation. It writes
// what it has read, and so never overwrites anybody.
func (s *storm) edit() {
	kind, pick := s.chance.IntN(5), s.chance.Int()
	for {
		route := &gatewayv1.HTTPRoute{}
		err := s.w.client.Get(context.Background(), client.ObjectKey{Namespace: s.w.namespace, Name: "web"}, route)
		if err == nil {
			s.change(route, kind, pick)
			err = s.w.client.Update(context.Background(), route, client.FieldOwner("storm"))
		}
		if err == nil {
			s.edits[route.ResourceVersion] = true
			return
		}
		if !apierrors.IsConflict(err) {
			s.w.t.Errorf("editing the route: %v", err)
			return
		}
	}
}

func (s *storm) change(route *gatewayv1.HTTPRoute, kind, pick int) {
	const most = 6
	rules := route.Spec.Rules
	var own []int
	for i, rule := range rules {
		if len(rule.BackendRefs) == 1 {
			own = append(own, i)
		}
	}
	switch {
	case kind == 0 && len(own) < most:
		s.foreign++
		rule := newRule(fmt.Sprintf("/foreign-%d", s.foreign), newBackendRef("assets", new(int32(s.foreign))))
		rule.Name = new(gatewayv1.SectionName(fmt.Sprintf("foreign-%d", s.foreign)))
		route.Spec.Rules = slices.Insert(rules, 0, rule)
	case kind == 1 && len(own) > 0:
		i := own[pick%len(own)]
		route.Spec.Rules = slices.Delete(rules, i, i+1)
	case kind == 2:
		slices.Reverse(rules)
	case kind == 3:
		for _, rule := range rules {
			slices.Reverse(rule.BackendRefs)
		}
	default:
		metav1.SetMetaDataAnnotation(&route.ObjectMeta, "example.com/edit", fmt.Sprint(len(s.edits)))
	}
}
