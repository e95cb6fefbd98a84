package workload

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The functions in this file and in standardvolumes.go take out of a pod spec what the
// API server would fill in, as the reference of the Kubernetes API documents it. They
// change what they are given.

// unset clears a field that has its standard value.
func unset[T comparable](field *T, standard T) {
	if *field == standard {
		var none T
		*field = none
	}
}

// unsetPointer clears an optional field that has its standard value.
func unsetPointer[T comparable](field **T, standard T) {
	if *field != nil && **field == standard {
		*field = nil
	}
}

func unsetStandards(spec *corev1.PodSpec) {
	unset(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	unset(&spec.DNSPolicy, corev1.DNSClusterFirst)
	unset(&spec.SchedulerName, corev1.DefaultSchedulerName)
	unsetPointer(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	unsetPointer(&spec.EnableServiceLinks, corev1.DefaultEnableServiceLinks)
	// serviceAccount is the old name of serviceAccountName, which wins.
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = spec.DeprecatedServiceAccount
	}
	spec.DeprecatedServiceAccount = ""
	roundUp(spec.Overhead)
	if spec.Resources != nil {
		roundUp(spec.Resources.Limits)
		roundUp(spec.Resources.Requests)
	}
	for i := range spec.InitContainers {
		unsetInContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		unsetInContainer(&spec.Containers[i])
	}
	for i := range spec.Volumes {
		unsetInVolume(&spec.Volumes[i].VolumeSource)
	}
}

func unsetInContainer(c *corev1.Container) {
	unset(&c.ImagePullPolicy, standardPullPolicy(c.Image))
	unset(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	unset(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		unset(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			unsetInFieldRef(from.FieldRef)
			if from.FileKeyRef != nil {
				unsetPointer(&from.FileKeyRef.Optional, false)
			}
		}
	}
	roundUp(c.Resources.Limits)
	roundUp(c.Resources.Requests)
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		unsetInProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				unsetInHTTPGet(hook.HTTPGet)
			}
		}
	}
}

func unsetInProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	unset(&p.TimeoutSeconds, 1)
	unset(&p.PeriodSeconds, 10)
	unset(&p.SuccessThreshold, 1)
	unset(&p.FailureThreshold, 3)
	unsetInHTTPGet(p.HTTPGet)
	if p.GRPC != nil {
		unsetPointer(&p.GRPC.Service, "")
	}
}

func unsetInHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		unset(&get.Path, "/")
		unset(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func unsetInFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		unset(&ref.APIVersion, "v1")
	}
}

// roundUp rounds quantities up to thousandths, the finest that the API server stores
// in a list of resources.
func roundUp(list corev1.ResourceList) {
	for name, quantity := range list {
		quantity.RoundUp(resource.Milli)
		list[name] = quantity
	}
}

// standardPullPolicy returns the policy that an image has without one: Always for the
// tag latest, which is also that of an image with neither tag nor digest.
func standardPullPolicy(image string) corev1.PullPolicy {
	name, _, hasDigest := strings.Cut(image, "@")
	// A colon before the last slash belongs to the registry's port.
	_, tag, hasTag := strings.Cut(name[strings.LastIndexByte(name, '/')+1:], ":")
	if tag == "latest" || !hasTag && !hasDigest {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
