// Package controllers reconciles WeightedRollouts: it observes, lets
// internal/rollout decide, writes the intent to status and the weights to the
// routes, and reports. It is the only part that talks to the API server.
package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/metrics"
	"github.com/weightedrollout/weightedrollout/internal/notify"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/route"
	"github.com/weightedrollout/weightedrollout/internal/telemetry"
)

// FieldOwner is the field manager of every write.
const FieldOwner = "weightedrollout"

// Evidence is where verdicts come from.
type Evidence interface {
	// Track says what to measure from now on.
	Track(telemetry.Target)
	// Forget stops measuring.
	Forget(types.NamespacedName)
	// Verdict returns the present verdict.
	Verdict(types.NamespacedName) health.Verdict
	// Problem says why the metrics server of a spec cannot be asked, or is nil.
	Problem(*v1alpha1.Health) *health.Problem
}

// Reconciler reconciles WeightedRollouts.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Recorder emits events.
	Recorder events.EventRecorder
	// Evidence is where verdicts come from.
	Evidence Evidence
	// Metrics count what happens; nil: nothing is counted.
	Metrics *metrics.Counters
	// Announce tells people elsewhere of a transition, without waiting; nil: nobody.
	Announce func(notify.Transition)
	// Clock is the only source of the time.
	Clock clock.PassiveClock
	// Confirm says what counts as a gateway's confirmation of a route.
	Confirm route.ConfirmMode
	// GatewayControllers are those whose confirmation counts where it cannot be read which
	// one serves a Gateway; empty: anybody's.
	GatewayControllers []gatewayv1.GatewayController
	// Namespaces are those that the cache looks at; empty for all.
	Namespaces []string

	// Scales reads the scale of workloads that are read in no other way. Others may serve
	// it, and say which kinds they have, so that nothing else is to wait for its answers.
	// Default: Client.
	Scales client.SubResourceClientConstructor

	writes      writeLog
	writeErrors errorLog
	owed        owedLog
	owners      ownership
	scales      scales
	// urgent are the rollouts that were put first and have not been decided on since, and
	// overtaken those whose last write met a conflict. The keys are NamespacedNames.
	urgent, overtaken sync.Map
	// alarms are the timers of rollouts that time alone will lower.
	alarms sync.Map
	// wake wakes a rollout from outside of a pass; nil: nobody listens.
	wake func(key types.NamespacedName, bad bool)
	// unserved are the kinds of routes that the cluster does not serve.
	unserved map[v1alpha1.RouteKind]bool
	readable readable
}

// +kubebuilder:rbac:groups=weightedrollout.dev,resources=weightedrollouts,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=weightedrollout.dev,resources=weightedrollouts/status,verbs=patch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes;grpcroutes,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=gateways;gatewayclasses,verbs=list;watch
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=list;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=list;watch
// +kubebuilder:rbac:groups=*,resources=*/scale,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups="",namespace=weightedrollout-system,resources=events,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=weightedrollout-system,resources=leases,verbs=get;create;update

// Reconcile takes one rollout one step further.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	wr := &v1alpha1.WeightedRollout{}
	if err := r.Client.Get(ctx, req.NamespacedName, wr); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("read WeightedRollout %s: %w", req, err)
	}
	if wr.Spec.Stable == nil || wr.Spec.Canary == nil || wr.Spec.Health == nil || len(wr.Spec.Routes) == 0 {
		// The schema forbids it; there is nothing that could be done with such an object.
		return ctrl.Result{}, r.removeFinalizer(ctx, wr)
	}
	stored := wr.Status
	wr.Status = r.owed.statusOf(wr)
	_, urgent := r.urgent.LoadAndDelete(req.NamespacedName)
	obs, fresh, err := r.observe(ctx, wr)
	if err != nil || !fresh {
		// Not fresh: the cache is older than our own last write. The watch brings us
		// back when it has caught up.
		return r.notYet(req, urgent, err)
	}
	obs.stored = stored
	decision := rollout.Decide(obs.Observation, r.Clock.Now())
	if obs.awaitsScale && !takesBack(obs, decision) {
		// The answer wakes us.
		return r.notYet(req, urgent, nil)
	}
	if err := r.act(ctx, wr, obs, decision); err != nil {
		return r.retry(req, obs, decision, err)
	}
	r.overtaken.Delete(req.NamespacedName)
	return r.requeue(req, obs, decision), nil
}

func (r *Reconciler) requeue(req ctrl.Request, obs observation, d rollout.Decision) ctrl.Result {
	r.setAlarm(req, obs, d)
	if d.NextAt.IsZero() || d.Release {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: r.until(d.NextAt), Priority: new(priorityDue)}
}

// until is how long it is to a time. A timer may be early by a moment, and a zero would mean
// never.
func (r *Reconciler) until(t time.Time) time.Duration {
	return max(t.Sub(r.Clock.Now()), minRequeue)
}

// retry turns what other writers cause into a silent new attempt, and hands on
// what is a real error.
func (r *Reconciler) retry(req ctrl.Request, obs observation, d rollout.Decision, err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: conflictRequeue, Priority: new(r.placeAfter(req, obs, d, true))}, nil
	}
	// What time alone lowers does not wait for the next try.
	r.setAlarm(req, obs, d)
	return ctrl.Result{Priority: new(r.placeAfter(req, obs, d, false))}, err
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.Evidence.Forget(key)
	r.writes.forget(key)
	r.writeErrors.forget(key)
	r.owed.forget(key)
	r.Metrics.Forget(key)
	r.overtaken.Delete(key)
	r.stopAlarm(key)
}
