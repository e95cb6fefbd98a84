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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	release           = "weightedrollout"
	systemNamespace   = "weightedrollout-system"
	serviceAccount    = "weightedrollout-manager"
	managerRepository = "ghcr.io/weightedrollout/weightedrollout"
	managerTag        = "e2e"
	earlierTag        = "e2e-earlier"
)

// installGateway installs the Gateway API, Traefik and Prometheus.
func installGateway(t *testing.T) {
	t.Helper()
	// A given cluster may have them in a version of its own.
	if has, err := cluster.hasDefinition(t.Context(), routeDefinition); err != nil {
		t.Fatal(err)
	} else if !has {
		kubectl(t, "apply", "--server-side", "-f", gatewayDefinitions())
		kubectl(t, "wait", "--for=condition=Established", "--timeout=2m", "crd", "gatewayclasses."+gatewayv1.GroupName,
			"gateways."+gatewayv1.GroupName, "httproutes."+gatewayv1.GroupName, "grpcroutes."+gatewayv1.GroupName)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "gateway.yaml"))
	must(t, err, "read a manifest")
	create(t, string(text))
	create(t, render(t, "prometheus.yaml.tmpl", map[string]any{"Gateway": cluster.address(t, gatewayNamespace, "traefik")}))
	kubectl(t, "rollout", "status", "--namespace="+gatewayNamespace, "--timeout=5m", "deployment/traefik")
	kubectl(t, "rollout", "status", "--namespace="+monitoringNamespace, "--timeout=5m", "deployment/prometheus")
}

func gatewayDefinitions() string { return filepath.Join(gatewayAPIDir, "config", "crd", "standard") }

// installProduct installs the controller by its chart, with the rights that are not given
// by default, so that they are used.
func installProduct(t *testing.T) {
	t.Helper()
	// Copies, so that an edit in the middle of a run is not taken for an upgrade.
	for _, dir := range []string{chart(), earlierChart()} {
		must(t, os.CopyFS(dir, os.DirFS(filepath.Join(moduleDir, "charts", "weightedrollout"))), "copy the chart")
	}
	makeEarlier(t)
	repository, tag := managerRepository, earlierTag
	if cluster.own == nil {
		var err error
		repository, tag, err = givenImage()
		must(t, err, "find the image")
	}
	t.Log(helm(t, "install", release, earlierChart(),
		"--namespace="+systemNamespace, "--create-namespace", "--wait", "--timeout=5m",
		"--set=image.repository="+repository, "--set-string=image.tag="+tag,
		"--set=replicas=2", "--set=prometheus.address="+prometheusAddress(t),
		"--set=workloads.write=true", "--set=secrets.read=true"))
}

func chart() string { return filepath.Join(cluster.Dir, "chart") }

// earlierChart stands for the one of an earlier release: there is none yet.
func earlierChart() string { return filepath.Join(cluster.Dir, "earlier") }

// makeEarlier makes the earlier chart differ in what a release changes: its version, the
// image, and the definition, which lacks the last column of kubectl get.
func makeEarlier(t *testing.T) {
	t.Helper()
	rewrite(t, filepath.Join(earlierChart(), "Chart.yaml"), func(chart map[string]any) error {
		return unstructured.SetNestedField(chart, "0.0.1-earlier", "version")
	})
	rewrite(t, filepath.Join(earlierChart(), "files", "weightedrollout.dev_weightedrollouts.yaml"), func(crd map[string]any) error {
		versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
		if err != nil {
			return err
		}
		version := versions[0].(map[string]any)
		columns, _, err := unstructured.NestedSlice(version, "additionalPrinterColumns")
		if err != nil {
			return err
		}
		version["additionalPrinterColumns"] = columns[:len(columns)-1]
		return unstructured.SetNestedSlice(crd, versions, "spec", "versions")
	})
}

// rewrite changes a YAML file.
func rewrite(t *testing.T, file string, change func(map[string]any) error) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err, "read "+file)
	object := map[string]any{}
	must(t, yaml.Unmarshal(text, &object), "read "+file)
	must(t, change(object), "change "+file)
	text, err = sigsyaml.Marshal(object)
	must(t, err, "change "+file)
	must(t, os.WriteFile(file, text, 0o600), "change "+file)
}

// columns counts the columns that the definition adds to kubectl get.
func columns(t *testing.T) int {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, cluster.Client.Get(t.Context(), client.ObjectKey{Name: definition}, crd), "read the definition")
	return len(crd.Spec.Versions[0].AdditionalPrinterColumns)
}

// kubectl runs kubectl as an administrator, and returns what it printed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, "kubectl", args...)
}

func helm(t *testing.T, args ...string) string {
	t.Helper()
	return command(t, "helm", args...)
}

// command runs a program that reaches the cluster.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := cluster.Command(ctx, name, args...)
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
