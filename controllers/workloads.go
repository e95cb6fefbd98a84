package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/rollout"
	"github.com/weightedrollout/weightedrollout/internal/workload"
)

// Kinds of workloads whose pod template is read.
const (
	deploymentKind  = "Deployment"
	statefulSetKind = "StatefulSet"
	autoscalerKind  = "HorizontalPodAutoscaler"
)

// writerRole is the ClusterRole that allows to scale and update workloads.
const writerRole = "weightedrollout-workload-writer"

// podWorkload is a workload of one of the kinds whose pod template is read.
type podWorkload struct {
	client.Object
	replicas *int32
	template *corev1.PodTemplateSpec
	rollout  func() (bool, string)
	outdated func() string
}

// tracks are the workloads of a rollout as they were read; nil where there is none.
type tracks struct{ stable, canary *podWorkload }

func newPodWorkload(kind string) (client.Object, func() *podWorkload) {
	if kind == statefulSetKind {
		s := &appsv1.StatefulSet{}
		return s, func() *podWorkload {
			return &podWorkload{s, s.Spec.Replicas, &s.Spec.Template, func() (bool, string) { return workload.StatefulSetRolledOut(s) }, func() string { return workload.StatefulSetOutdated(s) }}
		}
	}
	d := &appsv1.Deployment{}
	return d, func() *podWorkload {
		return &podWorkload{d, d.Spec.Replicas, &d.Spec.Template, func() (bool, string) { return workload.DeploymentRolledOut(d) }, func() string { return workload.DeploymentOutdated(d) }}
	}
}

func hasTemplate(ref *v1alpha1.WorkloadReference) bool {
	return ref.Kind == "" || ref.Kind == deploymentKind || ref.Kind == statefulSetKind
}

// observeWorkloads says what runs the pods of the two tracks. fresh is false if the cache
// has not yet seen our own last write to one of them.
func (r *Reconciler) observeWorkloads(ctx context.Context, wr *v1alpha1.WeightedRollout, obs *observation) (fresh bool, err error) {
	if obs.StableWorkload, obs.tracks.stable, err = r.readWorkload(ctx, wr, obs, v1alpha1.TrackStable, wr.Spec.Stable.Workload); err == nil {
		obs.CanaryWorkload, obs.tracks.canary, err = r.readWorkload(ctx, wr, obs, v1alpha1.TrackCanary, wr.Spec.Canary.Workload)
	}
	if errors.Is(err, errStale) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	key := client.ObjectKeyFromObject(wr)
	for _, w := range []*podWorkload{obs.tracks.stable, obs.tracks.canary} {
		if w != nil && !r.writes.seen(key, w) {
			return false, nil
		}
	}
	if s, c := obs.tracks.stable, obs.tracks.canary; s != nil && c != nil {
		obs.SameTemplate = workload.SameSpec(s.template, c.template)
	}
	return true, nil
}

func (r *Reconciler) readWorkload(ctx context.Context, wr *v1alpha1.WeightedRollout, obs *observation, track v1alpha1.TrackName, ref *v1alpha1.WorkloadReference) (*rollout.Workload, *podWorkload, error) {
	if ref == nil {
		return nil, nil, nil
	}
	w := &rollout.Workload{
		Kind: cmp.Or(ref.Kind, deploymentKind), Name: ref.Name,
		WriteError: r.writeErrors.of(client.ObjectKeyFromObject(wr), workloadKey(track)),
	}
	if !hasTemplate(ref) {
		obs.awaitsScale = !r.lookUpScale(ctx, wr, ref, w) || obs.awaitsScale
		return w, nil, nil
	}
	into, show := newPodWorkload(w.Kind)
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: wr.Namespace, Name: ref.Name}, into)
	switch {
	case apierrors.IsNotFound(err):
		w.Problem = "there is no such workload: create it, or correct the name in the spec"
		return w, nil, nil
	case err != nil:
		return nil, nil, fmt.Errorf("read %s %s/%s: %w", w.Kind, wr.Namespace, ref.Name, err)
	}
	read := show()
	w.Generation, w.Replicas, w.Revision = read.GetGeneration(), 1, workload.Revision(read.template)
	if read.replicas != nil {
		w.Replicas = *read.replicas
	}
	if ok, why := read.rollout(); !ok {
		w.Unready = why
	}
	w.Outdated = read.outdated()
	if wr.Spec.Canary.Capacity == v1alpha1.CapacityIgnore {
		return w, read, nil
	}
	return w, read, r.readAutoscaler(ctx, wr, ref, w)
}

func (r *Reconciler) readAutoscaler(ctx context.Context, wr *v1alpha1.WeightedRollout, ref *v1alpha1.WorkloadReference, w *rollout.Workload) error {
	h, err := r.autoscalerOf(ctx, wr.Namespace, ref)
	var ambiguous ambiguousError
	switch {
	case errors.As(err, &ambiguous):
		w.Problem = ambiguous.Error()
		return nil
	case err != nil:
		return err
	case h != nil && !r.writes.seen(client.ObjectKeyFromObject(wr), h):
		return errStale
	case h != nil:
		w.Autoscaler = &rollout.Autoscaler{Name: h.Name, Min: workload.MinReplicas(h), Max: h.Spec.MaxReplicas}
	}
	return nil
}

// errStale says that the cache is older than our own last write.
var errStale = errors.New("the cache is older than the last write")

// ambiguousError says that several autoscalers scale one workload.
type ambiguousError struct{ error }

func (r *Reconciler) autoscalerOf(ctx context.Context, namespace string, ref *v1alpha1.WorkloadReference) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	var list autoscalingv2.HorizontalPodAutoscalerList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{indexTarget: workloadIndex(ref.Kind, ref.Name)}); err != nil {
		return nil, fmt.Errorf("list the HorizontalPodAutoscalers of %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	h, err := workload.Autoscaler(list.Items, workload.Reference{
		APIVersion: cmp.Or(ref.APIVersion, appsv1.SchemeGroupVersion.String()), Kind: cmp.Or(ref.Kind, deploymentKind), Namespace: namespace, Name: ref.Name,
	})
	if err != nil {
		return nil, ambiguousError{err}
	}
	return h, nil
}

// writeWorkloads scales and updates as decided. One that cannot be written does not keep
// a route from being written.
func (r *Reconciler) writeWorkloads(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, d rollout.Decision) error {
	var errs []error
	failed := map[v1alpha1.TrackName]error{}
	for _, s := range d.Scales {
		err := r.scale(ctx, wr, obs, s)
		failed[s.Track] = errors.Join(failed[s.Track], err)
		if err != nil && (!d.Release || apierrors.IsConflict(err)) {
			errs = append(errs, fmt.Errorf("scale %s %s/%s to %d: %w", s.Kind, wr.Namespace, s.Name, s.To, err))
		}
	}
	if d.UpdateStable {
		err := r.updateStable(ctx, wr, obs)
		failed[v1alpha1.TrackStable] = errors.Join(failed[v1alpha1.TrackStable], err)
		if err != nil {
			errs = append(errs, fmt.Errorf("update the workload of stable: %w", err))
		}
	}
	key := client.ObjectKeyFromObject(wr)
	for _, track := range []v1alpha1.TrackName{v1alpha1.TrackStable, v1alpha1.TrackCanary} {
		r.writeErrors.set(key, workloadKey(track), hinted(failed[track]))
	}
	return errors.Join(errs...)
}

// hinted adds to a refusal what would allow it.
func hinted(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return fmt.Errorf("%w. Bind the ClusterRole %s to the controller in this namespace", err, writerRole)
}

func workloadKey(track v1alpha1.TrackName) routeKey {
	return routeKey{kind: "workload", name: string(track)}
}

func (r *Reconciler) scale(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation, s rollout.Scale) error {
	ref, read := wr.Spec.Stable.Workload, obs.tracks.stable
	if s.Track == v1alpha1.TrackCanary {
		ref, read = wr.Spec.Canary.Workload, obs.tracks.canary
	}
	if ref == nil || read == nil {
		return nil
	}
	if s.Kind == autoscalerKind {
		return r.setMinimum(ctx, wr, ref, s)
	}
	scale := &autoscalingv1.Scale{}
	if err := r.Client.SubResource("scale").Get(ctx, read.Object, scale); err != nil {
		return err
	}
	patch, err := workload.RaiseReplicas(scale, s.To)
	if s.To < s.From {
		patch, err = workload.RestoreReplicas(scale, s.From, s.To)
	}
	if err != nil || patch == nil {
		return err
	}
	err = r.Client.SubResource("scale").Patch(ctx, read.Object, client.RawPatch(types.JSONPatchType, patch),
		client.FieldOwner(FieldOwner), client.WithSubResourceBody(scale))
	if err == nil {
		// A scale has the uid and the resourceVersion of what it scales.
		r.writes.wrote(client.ObjectKeyFromObject(wr), scale)
	}
	return err
}

func (r *Reconciler) setMinimum(ctx context.Context, wr *v1alpha1.WeightedRollout, ref *v1alpha1.WorkloadReference, s rollout.Scale) error {
	h, err := r.autoscalerOf(ctx, wr.Namespace, ref)
	if err != nil || h == nil || h.Name != s.Name {
		return err
	}
	patch, err := workload.RaiseMinimum(h, s.To)
	if s.To < s.From {
		patch, err = workload.RestoreMinimum(h, s.From, s.To)
	}
	if err != nil || patch == nil {
		return err
	}
	h = h.DeepCopy()
	if err := r.Client.Patch(ctx, h, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner)); err != nil {
		return err
	}
	r.writes.wrote(client.ObjectKeyFromObject(wr), h)
	return nil
}

func (r *Reconciler) updateStable(ctx context.Context, wr *v1alpha1.WeightedRollout, obs observation) error {
	stable, canary := obs.tracks.stable, obs.tracks.canary
	if stable == nil || canary == nil {
		return nil
	}
	var patch []byte
	var err error
	switch o := stable.Object.(type) {
	case *appsv1.Deployment:
		patch, err = workload.UpdateDeployment(o, canary.template)
	case *appsv1.StatefulSet:
		patch, err = workload.UpdateStatefulSet(o, canary.template)
	}
	if err != nil || patch == nil {
		return err
	}
	written, _ := newPodWorkload(wr.Spec.Stable.Workload.Kind)
	written.SetNamespace(wr.Namespace)
	written.SetName(wr.Spec.Stable.Workload.Name)
	if err := r.Client.Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner)); err != nil {
		return err
	}
	r.writes.wrote(client.ObjectKeyFromObject(wr), written)
	return nil
}
