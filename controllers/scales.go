package controllers

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
)

const (
	// scaleTimeout is how long a scale is waited for.
	scaleTimeout = 2 * time.Second
	// scaleAge is how long an answer counts as the present scale.
	scaleAge = 5 * time.Second
	// scalePause is the least time between an answer and the next question.
	scalePause = 200 * time.Millisecond
	// scaleReads is how many scales of one namespace are read at a time.
	scaleReads = 8
)

// noScaleInTime is the problem with a scale that nobody answers for.
var noScaleInTime = fmt.Sprintf("its scale cannot be read: no answer within %s", scaleTimeout)

// scaleKey names a workload of any kind.
type scaleKey struct{ namespace, apiVersion, kind, name string }

// scales keeps the last answers about workloads that cannot be watched, and who waits for
// the next one. They are read apart from the workers that write routes: anybody may serve
// a kind with a scale, as slowly as they like. Its zero value is ready to use.
type scales struct {
	mu      sync.Mutex
	answers map[scaleKey]*scaleAnswer
	slots   map[string]chan struct{}
}

type scaleAnswer struct {
	replicas int32
	problem  string
	at       time.Time
	// reading is true while the next answer is awaited, and overdue once that has taken too
	// long.
	reading, overdue bool
	// waiting are the rollouts that the next answer wakes: in any case where true, and else
	// if it is another one.
	waiting map[types.NamespacedName]bool
}

// younger reports whether an answer is not older than that. One from the future counts
// as old: the clock was set back.
func (a *scaleAnswer) younger(than time.Duration, now time.Time) bool {
	age := now.Sub(a.at)
	return !a.at.IsZero() && age >= 0 && age <= than
}

// ask returns the last answer, and notes whom the next one wakes: who needs it if the last
// one is too old, and else who has decided by the last one, if that was wrong. That none came
// in time is the answer until one comes. read is true if somebody has to read it, after a pause.
func (s *scales) ask(k scaleKey, rollout types.NamespacedName, now time.Time) (last scaleAnswer, fresh, read bool, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[k]
	if a == nil {
		// What nobody asks about is not kept.
		maps.DeleteFunc(s.answers, func(_ scaleKey, a *scaleAnswer) bool { return !a.reading && !a.younger(scaleAge, now) })
		a = &scaleAnswer{problem: "its scale has not been read yet", waiting: map[types.NamespacedName]bool{}}
		if s.answers == nil {
			s.answers = map[scaleKey]*scaleAnswer{}
		}
		s.answers[k] = a
	}
	fresh = a.overdue || a.younger(scaleAge, now)
	a.waiting[rollout] = a.waiting[rollout] || !fresh
	if a.younger(scalePause, now) {
		pause = a.at.Add(scalePause).Sub(now)
	}
	read, a.reading = !a.reading, true
	return *a, fresh, read, pause
}

// answer keeps an answer, and returns whom it wakes. The scale can then be read again,
// unless the question is still open.
func (s *scales) answer(k scaleKey, replicas int32, problem string, now time.Time, open bool) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.answers[k]
	var woken []types.NamespacedName
	for key, anyway := range a.waiting {
		if anyway || replicas != a.replicas || problem != a.problem {
			woken = append(woken, key)
		}
	}
	a.replicas, a.problem, a.at, a.reading, a.overdue = replicas, problem, now, open, open
	clear(a.waiting)
	return woken
}

// slot bounds what is read at a time for one namespace.
func (s *scales) slot(namespace string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slots == nil {
		s.slots = map[string]chan struct{}{}
	}
	if s.slots[namespace] == nil {
		s.slots[namespace] = make(chan struct{}, scaleReads)
	}
	return s.slots[namespace]
}

// lookUpScale fills in the replicas of a workload of any kind from its scale subresource. It
// does not wait: it has the next answer read, and takes the last one. Where that is too old,
// fresh is false, and the next one wakes the rollout.
func (r *Reconciler) lookUpScale(ctx context.Context, wr *v1alpha1.WeightedRollout, ref *v1alpha1.WorkloadReference, w *rollout.Workload) (fresh bool) {
	k := scaleKey{wr.Namespace, ref.APIVersion, ref.Kind, ref.Name}
	last, fresh, read, pause := r.scales.ask(k, client.ObjectKeyFromObject(wr), r.Clock.Now())
	if read {
		ctx = context.WithoutCancel(ctx)
		time.AfterFunc(pause, func() { r.readScale(ctx, k) })
	}
	w.Replicas, w.Problem = last.replicas, last.problem
	return fresh
}

// readScale reads a scale, and wakes those who wait for it. What does not answer in time is
// told of, and is not asked again before it has answered after all.
func (r *Reconciler) readScale(ctx context.Context, k scaleKey) {
	slot := r.scales.slot(k.namespace)
	slot <- struct{}{}
	defer func() { <-slot }()
	ctx, cancel := context.WithTimeout(ctx, scaleTimeout)
	defer cancel()
	answered := make(chan struct{})
	var replicas int32
	var problem string
	go func() {
		defer close(answered)
		replicas, problem = r.fetchScale(ctx, k)
	}()
	select {
	case <-answered:
	case <-ctx.Done():
		r.tellScale(k, 0, noScaleInTime, true)
		// To ask which kinds a group has takes no deadline.
		<-answered
	}
	r.tellScale(k, replicas, problem, false)
}

func (r *Reconciler) tellScale(k scaleKey, replicas int32, problem string, open bool) {
	for _, key := range r.scales.answer(k, replicas, problem, r.Clock.Now(), open) {
		if r.wake != nil {
			r.wake(key, false)
		}
	}
}

// fetchScale asks the API server for a scale.
func (r *Reconciler) fetchScale(ctx context.Context, k scaleKey) (replicas int32, problem string) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(k.apiVersion)
	o.SetKind(k.kind)
	o.SetNamespace(k.namespace)
	o.SetName(k.name)
	// What is read without a type is answered without one.
	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	from := r.Scales
	if from == nil {
		from = r.Client
	}
	err := from.SubResource("scale").Get(ctx, o, scale)
	switch {
	case err != nil && ctx.Err() != nil:
		return 0, noScaleInTime
	case apierrors.IsNotFound(err):
		return 0, "there is no such workload, or its kind has no scale subresource: create it, or correct the spec"
	case apierrors.IsForbidden(err):
		return 0, "the controller may not read its scale: " + err.Error()
	case meta.IsNoMatchError(err):
		return 0, fmt.Sprintf("the cluster does not serve the kind %s of %s: correct the spec, or install it", k.kind, k.apiVersion)
	case err != nil:
		return 0, "its scale cannot be read: " + err.Error()
	}
	n, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, "its scale has no number of replicas in spec.replicas"
	}
	return int32(n), ""
}

// takesBack reports whether a decision takes traffic off the track under test, or lets the
// rollout go: that waits for no scale.
func takesBack(obs observation, d rollout.Decision) bool {
	return d.Release || obs.Deleting || slices.ContainsFunc(obs.Routes, d.Lowers)
}
