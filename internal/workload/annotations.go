package workload

import "strings"

// toolPrefixes begin the annotations that kubectl and Kubernetes itself write, such as
// kubectl.kubernetes.io/restartedAt and kubectl.kubernetes.io/last-applied-configuration.
var toolPrefixes = []string{"kubectl.kubernetes.io/", "deployment.kubernetes.io/"}

// restarts are the annotations by which other tools restart the pods of a workload, as
// kubectl rollout restart does: the version stays what it was.
var restarts = map[string]bool{
	"cattle.io/timestamp":                true, // Rancher
	"kubesphere.io/restartedAt":          true, // KubeSphere
	"openshift.openshift.io/restartedAt": true, // OpenShift's console
}

// counts says whether an annotation of a pod template is part of its revision. Those
// that say that the configuration has changed count, such as checksum/config by
// convention of Helm charts, and what Reloader writes.
func counts(key string) bool {
	for _, prefix := range toolPrefixes {
		if strings.HasPrefix(key, prefix) {
			return false
		}
	}
	return !restarts[key]
}

// counting returns the annotations that count.
func counting(annotations map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range annotations {
		if counts(key) {
			kept[key] = value
		}
	}
	return kept
}
