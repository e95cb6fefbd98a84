package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	release           = "weightedrollout"
	systemNamespace   = "weightedrollout-system"
	serviceAccount    = "weightedrollout-manager"
	managerRepository = "ghcr.io/weightedrollout/weightedrollout"
	managerTag        = "e2e"

	gatewayAddress    = "10.96.0.80:80"
	prometheusAddress = "http://10.96.0.90:9090"
)

// installGateway installs the Gateway API, Traefik and Prometheus.
func installGateway(t *testing.T) {
	t.Helper()
	kubectl(t, "apply", "--server-side", "-f", filepath.Join(gatewayAPIDir, "config", "crd", "standard"))
	kubectl(t, "wait", "--for=condition=Established", "--timeout=2m", "crd", "--all")
	for _, file := range []string{"gateway.yaml", "prometheus.yaml"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		create(t, string(text))
	}
	kubectl(t, "rollout", "status", "--namespace=traefik", "--timeout=5m", "deployment/traefik")
	kubectl(t, "rollout", "status", "--namespace=monitoring", "--timeout=5m", "deployment/prometheus")
}

// installProduct installs the controller by its chart, with the rights that are not given
// by default, so that they are used.
func installProduct(t *testing.T) {
	t.Helper()
	// A copy, so that an edit in the middle of a run is not taken for an upgrade.
	must(t, os.CopyFS(chart(), os.DirFS(filepath.Join(moduleDir, "charts", "weightedrollout"))), "copy the chart")
	t.Log(helm(t, "install", release, chart(),
		"--namespace="+systemNamespace, "--create-namespace", "--wait", "--timeout=5m",
		"--set=image.repository="+managerRepository, "--set=image.tag="+managerTag, "--set=image.pullPolicy=Never",
		"--set=replicas=2", "--set=prometheus.address="+prometheusAddress,
		"--set=workloads.write=true", "--set=secrets.read=true"))
}

func chart() string { return filepath.Join(cluster.Dir, "chart") }

// kubectl runs kubectl as an administrator, and returns what it printed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, "kubectl", args...)
}

func helm(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, "helm", args...)
}

// command runs a program in the cluster's network.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := cluster.Command(ctx, name, args...)
	for _, kind := range []string{"CACHE", "CONFIG", "DATA"} {
		cmd.Env = append(cmd.Env, "HELM_"+kind+"_HOME="+filepath.Join(cluster.Dir, "helm", strings.ToLower(kind)))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s\n%s", name, strings.Join(args, " "), err, out, podsOfSystem())
	}
	return string(out)
}

// create creates every object of a YAML text.
func create(t *testing.T, text string) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("reading a manifest: %v\n%s", err, text)
		}
		if len(object.Object) == 0 {
			continue
		}
		if err := cluster.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("creating %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// managers lists the controller's pods that are not being deleted, by name.
func managers(t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	must(t, cluster.Client.List(t.Context(), &pods, client.InNamespace(systemNamespace),
		client.MatchingLabels{"app.kubernetes.io/name": "weightedrollout", "app.kubernetes.io/component": "manager"}), "list the controller's pods")
	there := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(there, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return there
}

// leader returns the pod that holds the lease, once it is one that is there.
func leader(t *testing.T) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	eventually(t, "a leader", func() (bool, string) {
		lease := &coordinationv1.Lease{}
		err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "weightedrollout.dev"}, lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, fmt.Sprint("no lease: ", err)
		}
		name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
		for _, pod := range managers(t) {
			if pod.Name == name && running(&pod) {
				found = &pod
				return true, ""
			}
		}
		return false, "the lease names " + *lease.Spec.HolderIdentity + ", which is gone"
	})
	return found
}

func running(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Running != nil
}

// restarts counts, for each of the controller's pods, how often its container ended.
func restarts(t *testing.T) map[string]int32 {
	t.Helper()
	counts := map[string]int32{}
	for _, pod := range managers(t) {
		for _, status := range pod.Status.ContainerStatuses {
			counts[pod.Name] += status.RestartCount
		}
	}
	return counts
}

// podsOfSystem describes the controller's pods, for somebody who looks for a failure.
func podsOfSystem() string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, _ := cluster.Command(ctx, "kubectl", "get", "pods,events", "--namespace="+systemNamespace).CombinedOutput()
	return string(out)
}

func must(t *testing.T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// eventually waits until a condition holds. The condition says what it has seen.
func eventually(t *testing.T, what string, condition func() (bool, string)) {
	t.Helper()
	var seen string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(pollEvery) {
		var ok bool
		if ok, seen = condition(); ok {
			return
		}
		if err := cluster.Err(); err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
	t.Fatalf("not within %s: %s; last seen: %s", patience, what, seen)
}
