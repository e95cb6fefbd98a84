package controllers

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// minRequeue makes up for timers that fire a moment early.
	minRequeue = 5 * time.Millisecond
	// conflictRequeue is the wait before a pass is done again after a conflict, for
	// the cache to catch up.
	conflictRequeue = 100 * time.Millisecond
)

// writeLog knows the resourceVersion of our last write to each object, by the
// rollout that it was written for. Its zero value is ready to use.
type writeLog struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]map[types.UID]string
}

func (l *writeLog) wrote(rollout types.NamespacedName, o metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.versions == nil {
		l.versions = map[types.NamespacedName]map[types.UID]string{}
	}
	if l.versions[rollout] == nil {
		l.versions[rollout] = map[types.UID]string{}
	}
	l.versions[rollout][o.GetUID()] = o.GetResourceVersion()
}

// seen tells whether an object from the cache is at least as new as our last write
// to it. An object whose versions cannot be compared counts as seen: the lock on
// its resourceVersion still protects every write.
func (l *writeLog) seen(rollout types.NamespacedName, o metav1.Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	written, ok := l.versions[rollout][o.GetUID()]
	if !ok {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), written)
	return err != nil || order >= 0
}

func (l *writeLog) forget(rollout types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.versions, rollout)
}

// errorLog knows how the last write to a route ended: why it was refused, or that another
// write came before it. Its zero value is ready to use.
type errorLog struct {
	mu        sync.Mutex
	errors    map[types.NamespacedName]map[routeKey]string
	overtaken map[types.NamespacedName]map[routeKey]bool
}

func (l *errorLog) set(rollout types.NamespacedName, route routeKey, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.errors[rollout], route)
	delete(l.overtaken[rollout], route)
	switch {
	case err == nil || apierrors.IsNotFound(err):
	case apierrors.IsConflict(err):
		note(&l.overtaken, rollout, route, true)
	default:
		note(&l.errors, rollout, route, err.Error())
	}
}

// note keeps a value about a route of a rollout.
func note[V any](in *map[types.NamespacedName]map[routeKey]V, rollout types.NamespacedName, route routeKey, v V) {
	if *in == nil {
		*in = map[types.NamespacedName]map[routeKey]V{}
	}
	if (*in)[rollout] == nil {
		(*in)[rollout] = map[routeKey]V{}
	}
	(*in)[rollout][route] = v
}

func (l *errorLog) of(rollout types.NamespacedName, route routeKey) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.errors[rollout][route]
}

// isOvertaken tells whether the last write did not go through, since another one came
// before it.
func (l *errorLog) isOvertaken(rollout types.NamespacedName, route routeKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.overtaken[rollout][route]
}

func (l *errorLog) forget(rollout types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.errors, rollout)
	delete(l.overtaken, rollout)
}
