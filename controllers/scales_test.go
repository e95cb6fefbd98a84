package controllers

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// woken makes the rollouts known that the Reconciler wakes from outside of a pass.
func (r *Reconciler) woken() <-chan types.NamespacedName {
	woken := make(chan types.NamespacedName, 1000)
	r.wake = func(key types.NamespacedName, _ bool) { woken <- key }
	return woken
}

// next waits for a rollout to be woken.
func next(t *testing.T, woken <-chan types.NamespacedName) types.NamespacedName {
	t.Helper()
	select {
	case key := <-woken:
		return key
	case <-time.After(time.Minute):
		t.Fatal("nobody was woken")
	}
	return types.NamespacedName{}
}

// replicaSets is a rollout whose canary is a ReplicaSet, of which only the scale is read.
func replicaSets() *v1alpha1.WeightedRollout {
	wr := scaling(v1alpha1.CapacityCheck)
	wr.Spec.Canary.Workload.Kind = "ReplicaSet"
	return wr
}

// A scale that cannot be read is a problem to tell of, and keeps no decision from being
// taken: a rollback does not wait for it.
func TestScaleIsRead(t *testing.T) {
	kind := schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	four := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-canary"}, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(4))}}
	for _, tc := range []struct {
		name     string
		objects  []client.Object
		answer   error
		replicas int32
		problem  string
	}{
		{"read", []client.Object{four}, nil, 4, ""},
		{"not found", nil, nil, 0, "there is no such workload, or its kind has no scale subresource: create it"},
		{"forbidden", []client.Object{four}, forbidden("replicasets", "web-canary"), 0, "the controller may not read its scale: "},
		{"a failing API server", []client.Object{four}, apierrors.NewInternalError(errors.New("etcd is down")), 0, "its scale cannot be read: Internal error occurred: etcd is down"},
		{"no such kind", nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: []string{"v1"}}, 0, "the cluster does not serve the kind ReplicaSet of apps/v1: correct the spec, or install it"},
		{"no answer", []client.Object{four}, context.DeadlineExceeded, 0, "its scale cannot be read: context deadline exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serving(t, append(tc.objects, deployment("web-stable", 10, "web:1"))...)
			s.scale = tc.answer
			woken, wr := s.woken(), replicaSets()
			if obs := s.observed(wr); !obs.awaitsScale || obs.CanaryWorkload.Problem != "its scale has not been read yet" {
				t.Errorf("before the answer: awaits it %v, %q", obs.awaitsScale, obs.CanaryWorkload.Problem)
			}
			if key := next(t, woken); key != client.ObjectKeyFromObject(wr) {
				t.Errorf("woken: %s", key)
			}
			got := s.observed(wr)
			w := got.CanaryWorkload
			if w.Replicas != tc.replicas || (w.Problem == "") != (tc.problem == "") || !strings.HasPrefix(w.Problem, tc.problem) || got.awaitsScale {
				t.Errorf("%d replicas, problem %q, awaits %v, want %d, %q", w.Replicas, w.Problem, got.awaitsScale, tc.replicas, tc.problem)
			}
			if got.StableWorkload.Replicas != 10 || got.tracks.canary != nil || got.SameTemplate {
				t.Errorf("stable has %d replicas, same template %v", got.StableWorkload.Replicas, got.SameTemplate)
			}
		})
	}
}

// slowScales answers once it is told to, with the replicas that it is told.
type slowScales struct {
	mu        sync.Mutex
	reads     int
	longest   time.Duration
	answers   chan int64
	forgetful bool // it does not keep to the deadline
}

func (s *slowScales) funcs() interceptor.Funcs {
	return interceptor.Funcs{SubResourceGet: func(ctx context.Context, _ client.Client, _ string, _, into client.Object, _ ...client.SubResourceGetOption) error {
		deadline, _ := ctx.Deadline()
		s.mu.Lock()
		s.reads++
		s.longest = max(s.longest, time.Until(deadline))
		s.mu.Unlock()
		var done <-chan struct{}
		if !s.forgetful {
			done = ctx.Done()
		}
		select {
		case replicas := <-s.answers:
			scale, _ := into.(*unstructured.Unstructured)
			return unstructured.SetNestedField(scale.Object, replicas, "spec", "replicas")
		case <-done:
			return ctx.Err()
		}
	}}
}

func (s *slowScales) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// A scale is read apart from the passes: none waits for it, however many look at it while it
// is read; it has two seconds; and the answer is good for five, unless another one comes.
func TestNoPassWaitsForAScale(t *testing.T) {
	s := serving(t, deployment("web-stable", 10, "web:1"))
	slow := &slowScales{answers: make(chan int64)}
	s.intercepted(t, slow.funcs())
	woken := s.woken()
	now := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	s.Clock = now
	wr, other := replicaSets(), replicaSets()
	other.Name = "other"
	for range 20 {
		for _, wr := range []*v1alpha1.WeightedRollout{wr, other} {
			if obs := s.observed(wr); !obs.awaitsScale {
				t.Fatal("nobody has answered, and the pass does not wait")
			}
		}
	}
	slow.answers <- 4
	names := map[string]bool{next(t, woken).Name: true, next(t, woken).Name: true}
	if !names["web"] || !names["other"] {
		t.Errorf("woken: %v", names)
	}
	for _, tc := range []struct {
		after  time.Duration
		awaits bool
	}{{0, false}, {scaleAge, false}, {time.Millisecond, true}} {
		now.Step(tc.after)
		if obs := s.observed(wr); obs.awaitsScale != tc.awaits || obs.CanaryWorkload.Replicas != 4 || obs.CanaryWorkload.Problem != "" {
			t.Errorf("%s later: awaits an answer %v, %+v", tc.after, obs.awaitsScale, obs.CanaryWorkload)
		}
	}
	slow.answers <- 7
	next(t, woken)
	if obs := s.observed(wr); obs.awaitsScale || obs.CanaryWorkload.Replicas != 7 {
		t.Errorf("then: awaits an answer %v, %+v", obs.awaitsScale, obs.CanaryWorkload)
	}
	now.Step(-time.Hour)
	if obs := s.observed(wr); !obs.awaitsScale {
		t.Error("an answer from the future is taken for the present scale")
	}
	slow.answers <- 7
	next(t, woken)
	// An answer that changes nothing wakes nobody who has decided by it.
	if obs := s.observed(wr); obs.awaitsScale {
		t.Error("awaits an answer that has come")
	}
	slow.answers <- 7
	key := scaleKey{"shop", "apps/v1", "ReplicaSet", "web-canary"}
	for reading := true; reading; {
		s.scales.mu.Lock()
		reading = s.scales.answers[key].reading
		s.scales.mu.Unlock()
	}
	if got := slow.count(); got != 4 || slow.longest > scaleTimeout || slow.longest < scaleTimeout/2 || len(woken) > 0 {
		t.Errorf("%d reads, the longest may take %s, %d are woken", got, slow.longest, len(woken))
	}
	// One that does, does.
	s.observed(wr)
	slow.answers <- 8
	next(t, woken)
}

// What does not answer in time is told of, and is not asked again while the question is
// still open.
func TestScaleWithoutAnAnswer(t *testing.T) {
	s := serving(t, deployment("web-stable", 10, "web:1"))
	slow := &slowScales{answers: make(chan int64), forgetful: true}
	s.intercepted(t, slow.funcs())
	woken := s.woken()
	now := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	s.Clock = now
	wr := replicaSets()
	s.observed(wr)
	next(t, woken)
	if obs := s.observed(wr); obs.awaitsScale || obs.CanaryWorkload.Problem != "its scale cannot be read: no answer within 2s" {
		t.Errorf("awaits an answer %v, problem %q", obs.awaitsScale, obs.CanaryWorkload.Problem)
	}
	now.Step(time.Minute)
	if obs := s.observed(wr); obs.awaitsScale || obs.CanaryWorkload.Problem == "" {
		t.Errorf("a minute later: awaits an answer %v, problem %q", obs.awaitsScale, obs.CanaryWorkload.Problem)
	}
	if got := slow.count(); got != 1 {
		t.Errorf("%d questions are open", got)
	}
	slow.answers <- 4
	next(t, woken)
	if obs := s.observed(wr); obs.awaitsScale || obs.CanaryWorkload.Problem != "" || obs.CanaryWorkload.Replicas != 4 {
		t.Errorf("after all: awaits an answer %v, %+v", obs.awaitsScale, obs.CanaryWorkload)
	}
}

// Slow scales of one namespace are read a few at a time, and keep nothing from those of
// another one.
func TestScalesOfOneNamespaceAreBounded(t *testing.T) {
	s := serving(t)
	slow := &slowScales{answers: make(chan int64)}
	s.intercepted(t, slow.funcs())
	woken := s.woken()
	ask := func(namespace, name string) {
		wr := replicaSets()
		wr.Namespace = namespace
		wr.Spec.Stable.Workload, wr.Spec.Canary.Workload.Name = nil, name
		s.observed(wr)
	}
	for i := range 3 * scaleReads {
		ask("shop", strings.Repeat("x", i+1))
	}
	ask("other", "web")
	// Each read that ends lets one more begin: never are there more under way.
	for range 3*scaleReads + 1 {
		slow.answers <- 1
		next(t, woken)
	}
	slots := s.scales.slot("shop")
	if cap(slots) != scaleReads || slow.count() != 3*scaleReads+1 {
		t.Errorf("%d reads, at most %d at a time", slow.count(), cap(slots))
	}
}

// A raise waits for the present scale, and a rollback does not.
func TestDecisionsThatAwaitAScale(t *testing.T) {
	for _, abort := range []bool{false, true} {
		c := newCrowd(t)
		c.open()
		slow := &slowScales{answers: make(chan int64)}
		c.intercepted(t, slow.funcs())
		woken := c.woken()
		c.serving("r001")
		edited("r001", func(wr *v1alpha1.WeightedRollout) {
			wr.Spec.Canary.Workload = &v1alpha1.WorkloadReference{APIVersion: "example.com/v1", Kind: "Fleet", Name: "r001"}
			if abort {
				wr.Annotations = map[string]string{v1alpha1.AbortAnnotation: "1"}
			}
		})(c)
		req := requestFor(c.rollout("r001"))
		if _, err := c.Reconcile(t.Context(), req); err != nil || len(c.wrote) > 0 != abort {
			t.Errorf("aborted %v: %v, written before the answer: %v", abort, err, c.wrote)
		}
		slow.answers <- 1
		next(t, woken)
		if _, err := c.Reconcile(t.Context(), req); err != nil || len(c.wrote) == 0 {
			t.Errorf("aborted %v: %v, written after it: %v", abort, err, c.wrote)
		}
	}
}

// Answers that change all the time do not keep a rollout busy: there is a pause before the
// next question, and none where an answer is needed.
func TestPauseBetweenQuestions(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	k, web := scaleKey{"shop", "apps/v1", "ReplicaSet", "web"}, types.NamespacedName{Namespace: "shop", Name: "web"}
	for _, tc := range []struct {
		after, pause time.Duration
		fresh        bool
	}{
		{0, scalePause, true},
		{scalePause / 2, scalePause / 2, true},
		{scalePause, 0, true},
		{scaleAge, 0, true},
		{scaleAge + 1, 0, false},
		{-1, 0, false},
	} {
		var s scales
		if _, fresh, read, pause := s.ask(k, web, at); fresh || !read || pause != 0 {
			t.Errorf("at first: fresh %v, read %v, after %s", fresh, read, pause)
		}
		if woken := s.answer(k, 4, "", at, false); len(woken) != 1 {
			t.Errorf("woken: %v", woken)
		}
		if _, fresh, read, pause := s.ask(k, web, at.Add(tc.after)); fresh != tc.fresh || !read || pause != tc.pause {
			t.Errorf("%s after an answer: fresh %v, read %v, after %s", tc.after, fresh, read, pause)
		}
		if _, _, read, _ := s.ask(k, web, at.Add(tc.after)); read {
			t.Errorf("%s after an answer: the question is asked twice", tc.after)
		}
	}
}
