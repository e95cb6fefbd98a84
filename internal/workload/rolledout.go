package workload

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// maxReason bounds what a message quotes from a workload's condition, in characters.
const maxReason = 200

// progress is what the status of a workload counts.
type progress struct {
	generation, observed    int64
	wanted                  int32
	all, updated, available int32
}

// DeploymentRolledOut says whether every replica that a Deployment wants runs its
// template and is available, and none of another template is left. If not, why says
// what is missing, and what to do if nothing will change by itself. A Deployment that
// wants 0 replicas has rolled out when none is left.
func DeploymentRolledOut(d *appsv1.Deployment) (ok bool, why string) {
	if d == nil {
		return false, "there is no such Deployment"
	}
	p := progress{
		generation: d.Generation, observed: d.Status.ObservedGeneration,
		wanted: wantedReplicas(d.Spec.Replicas),
		all:    d.Status.Replicas, updated: d.Status.UpdatedReplicas, available: d.Status.AvailableReplicas,
	}
	why = p.missing()
	if why == "" {
		return true, ""
	}
	if d.Spec.Paused && p.outdated() {
		why += "; the Deployment is paused: set spec.paused to false"
	}
	return false, why + deploymentTrouble(d.Status.Conditions)
}

// StatefulSetRolledOut is DeploymentRolledOut for a StatefulSet.
func StatefulSetRolledOut(s *appsv1.StatefulSet) (ok bool, why string) {
	if s == nil {
		return false, "there is no such StatefulSet"
	}
	p := progress{
		generation: s.Generation, observed: s.Status.ObservedGeneration,
		wanted: wantedReplicas(s.Spec.Replicas),
		all:    s.Status.Replicas, updated: s.Status.UpdatedReplicas, available: s.Status.AvailableReplicas,
	}
	why = p.missing()
	if why == "" {
		return true, ""
	}
	if p.outdated() {
		why += statefulSetAdvice(&s.Spec.UpdateStrategy)
	}
	return false, why
}

// wantedReplicas is what a workload without a number wants.
func wantedReplicas(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// outdated says whether the workload is known to run, or to want, replicas of an older
// template.
func (p progress) outdated() bool {
	return p.observed >= p.generation && (p.updated < p.wanted || p.all > p.updated)
}

// missing says what keeps a workload from having rolled out; empty if nothing does.
func (p progress) missing() string {
	switch {
	case p.observed < p.generation:
		return fmt.Sprintf("generation %d has not been observed yet", p.generation)
	case p.updated < p.wanted:
		return fmt.Sprintf("%d of %d replicas run the new template", p.updated, p.wanted)
	case p.all > p.updated:
		return fmt.Sprintf("%d of %d replicas run an old template", p.all-p.updated, p.all)
	case p.available < p.wanted:
		return fmt.Sprintf("%d of %d replicas are available", p.available, p.wanted)
	default:
		return ""
	}
}

func statefulSetAdvice(s *appsv1.StatefulSetUpdateStrategy) string {
	if s.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return "; the update strategy is OnDelete: delete the old pods, or set spec.updateStrategy.type to RollingUpdate"
	}
	if r := s.RollingUpdate; r != nil && r.Partition != nil && *r.Partition > 0 {
		return fmt.Sprintf("; spec.updateStrategy.rollingUpdate.partition keeps the pods below number %d as they are: set it to 0", *r.Partition)
	}
	return ""
}

// deploymentTrouble quotes what the Deployment's controller complains of.
func deploymentTrouble(conditions []appsv1.DeploymentCondition) string {
	for _, c := range conditions {
		failed := c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
		late := c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse
		if failed || late {
			return fmt.Sprintf("; %s: %s", c.Reason, clip(c.Message))
		}
	}
	return ""
}

// clip bounds a foreign text and keeps it on one line.
func clip(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > maxReason {
		return string(runes[:maxReason-1]) + "…"
	}
	return string(runes)
}

// DeploymentOutdated says that pods of an older template may be behind a Deployment.
func DeploymentOutdated(d *appsv1.Deployment) string {
	return progress{generation: d.Generation, observed: d.Status.ObservedGeneration, all: d.Status.Replicas, updated: d.Status.UpdatedReplicas}.missing()
}

// StatefulSetOutdated is DeploymentOutdated for a StatefulSet.
func StatefulSetOutdated(s *appsv1.StatefulSet) string {
	return progress{generation: s.Generation, observed: s.Status.ObservedGeneration, all: s.Status.Replicas, updated: s.Status.UpdatedReplicas}.missing()
}
