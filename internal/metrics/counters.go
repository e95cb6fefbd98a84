package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Results of a write to a route.
const (
	// RouteWritten went through.
	RouteWritten = "written"
	// RouteConflict met another write in between, and was computed again.
	RouteConflict = "conflict"
	// RouteFailed was refused, or did not arrive.
	RouteFailed = "failed"
)

// Results of a notification.
const (
	// NotificationSent was taken by the receiver.
	NotificationSent = "sent"
	// NotificationFailed was given up.
	NotificationFailed = "failed"
	// NotificationDropped was given up untold: too many were waiting, or it was too old.
	NotificationDropped = "dropped"
)

// Results of an evaluation.
const (
	evaluationRead   = "read"
	evaluationFailed = "failed"
)

// Counters count what happens. A nil *Counters counts nothing.
type Counters struct {
	transitions, routeWrites, unrecorded, evaluations, faults, notifications *prometheus.CounterVec
}

// NewCounters returns counters that stand at 0.
func NewCounters() *Counters {
	return &Counters{
		transitions: transitions.counter(), routeWrites: routeWrites.counter(), unrecorded: unrecorded.counter(), evaluations: evaluations.counter(),
		faults: providerFault.counter(), notifications: notifications.counter(),
	}
}

func (d Definition) counter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.labels())
}

func (c *Counters) all() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{c.transitions, c.routeWrites, c.unrecorded, c.evaluations, c.faults, c.notifications}
}

// Describe describes the counters.
func (c *Counters) Describe(to chan<- *prometheus.Desc) {
	for _, v := range c.all() {
		v.Describe(to)
	}
}

// Collect tells the counters.
func (c *Counters) Collect(to chan<- prometheus.Metric) {
	for _, v := range c.all() {
		v.Collect(to)
	}
}

// Transition counts an event.
func (c *Counters) Transition(k types.NamespacedName, reason string) {
	if c != nil {
		c.transitions.WithLabelValues(k.Namespace, k.Name, reason).Inc()
	}
}

// RouteWrite counts a write to a route: RouteWritten, RouteConflict or RouteFailed.
func (c *Counters) RouteWrite(k types.NamespacedName, result string) {
	if c != nil {
		c.routeWrites.WithLabelValues(k.Namespace, k.Name, result).Inc()
	}
}

// Unrecorded counts a pass whose decision the API server did not store.
func (c *Counters) Unrecorded(k types.NamespacedName) {
	if c != nil {
		c.unrecorded.WithLabelValues(k.Namespace, k.Name).Inc()
	}
}

// Evaluated counts an evaluation; the reason says why the metrics could not be read, and
// is empty if they were.
func (c *Counters) Evaluated(k types.NamespacedName, reason string) {
	if c == nil {
		return
	}
	result := evaluationRead
	if reason != "" {
		result = evaluationFailed
		c.faults.WithLabelValues(k.Namespace, k.Name, reason).Inc()
	}
	c.evaluations.WithLabelValues(k.Namespace, k.Name, result).Inc()
}

// Notification counts the end of a notification: NotificationSent, NotificationFailed or
// NotificationDropped.
func (c *Counters) Notification(k types.NamespacedName, result string) {
	if c != nil {
		c.notifications.WithLabelValues(k.Namespace, k.Name, result).Inc()
	}
}

// Forget drops everything about a rollout that is gone.
func (c *Counters) Forget(k types.NamespacedName) {
	if c == nil {
		return
	}
	for _, v := range c.all() {
		v.DeletePartialMatch(prometheus.Labels{"namespace": k.Namespace, "name": k.Name})
	}
}
