package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// page is a page of the documentation whose commands are run as they stand there.
type page struct {
	file   string
	blocks map[string][]string // commands by the heading above them
	bed    *testbed.Bed
	dir    string // what a clone of the repository is for the commands
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

func readPage(t *testing.T, bed *testbed.Bed, file string) *page {
	t.Helper()
	p := &page{file: file, blocks: map[string][]string{}, bed: bed, dir: t.TempDir()}
	for part := range strings.SplitSeq(readFile(t, filepath.Join(root, file)), "\n## ") {
		heading, text, _ := strings.Cut(part, "\n")
		for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
			p.blocks[heading] = append(p.blocks[heading], block[1])
		}
	}
	for _, name := range []string{"charts", "config"} {
		from, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(from, filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"token", "ca.crt"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// run runs one block of commands below a heading, from 0, and returns what it prints.
func (p *page) run(t *testing.T, heading string, block int) string {
	t.Helper()
	if block >= len(p.blocks[heading]) {
		t.Fatalf("%s has no block of commands number %d below %q", p.file, block, heading)
	}
	bin, err := filepath.Abs(binDir())
	if err != nil {
		t.Fatal(err)
	}
	text := p.blocks[heading][block]
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+p.bed.Kubeconfig,
		"HELM_CACHE_HOME="+helmHome+"/cache", "HELM_CONFIG_HOME="+helmHome+"/config", "HELM_DATA_HOME="+helmHome+"/data")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s, below %q: %v\n%s\n%s", p.file, heading, err, text, out)
	}
	return string(out)
}

// playDeployment says that the controller's pods are ready.
func playDeployment(t *testing.T, bed *testbed.Bed) {
	t.Helper()
	d := &appsv1.Deployment{}
	if err := bed.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "weightedrollout-manager"}, d); err != nil {
		t.Fatal(err)
	}
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if err := bed.Client.Status().Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

// playNamespaces ends namespaces that are deleted, until the test ends: nothing else
// here does.
func playNamespaces(t *testing.T, bed *testbed.Bed) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			ns := &corev1.Namespace{}
			if bed.Client.Get(ctx, client.ObjectKey{Name: system}, ns) == nil && !ns.DeletionTimestamp.IsZero() {
				ns.Spec.Finalizers = nil
				// What fails now is tried again.
				_ = bed.Client.SubResource("finalize").Update(ctx, ns)
			}
			select {
			case <-ctx.Done():
			case <-time.After(pollEvery):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// TestInstallPage runs docs/install.md from the top to the bottom. Left out are only the
// commands that make the image and those that read the log of a pod, since there are no
// pods.
func TestInstallPage(t *testing.T) {
	bed := emptyCluster(t)
	p := readPage(t, bed, "docs/install.md")
	playJobs(t, bed)
	playNamespaces(t, bed)

	// The page has a Prometheus Operator scrape the controller.
	mustRun(t, bed, "kubectl", "apply", "--server-side", "-f", "testdata/monitoring")
	mustRun(t, bed, "kubectl", "wait", "--for=condition=Established", "--timeout=1m", "crd/servicemonitors.monitoring.coreos.com")

	p.run(t, "Before", 0)
	for i := range 4 { // install, label, upgrades with a token and with a monitor
		p.run(t, "With Helm", i)
	}
	if flags := deployedFlags(t, bed); !slices.Contains(flags, "--prometheus-address=https://prometheus.monitoring:9090") {
		t.Errorf("the last upgrade has forgotten what the one before it set: %q", flags)
	}
	mustRun(t, bed, "kubectl", "get", "clusterrolebinding", "weightedrollout-metrics-reader")
	playDeployment(t, bed)
	m := startManager(t, bed, deployedFlags(t, bed), "weightedrollout-manager")
	eventually(t, "the controller has its lease", func() (bool, string) {
		out, err := command(t.Context(), bed, "kubectl", "get", "lease", "weightedrollout.dev", "-n", system)
		return err == nil, out
	})
	if out := p.run(t, "Does it run?", 0); !strings.Contains(out, "successfully rolled out") || !strings.Contains(out, "No resources found") {
		t.Errorf("it is said to run otherwise than the page says:\n%s", out)
	}
	p.run(t, "Upgrades", 0)
	p.run(t, "Uninstallation", 0)
	p.run(t, "Uninstallation", 2) // the definition
	if err := m.Stop(); err != nil {
		t.Error(err)
	}

	for _, namespace := range []string{"shop", "checkout"} {
		shop(t, bed, namespace)
	}
	p.run(t, "For some namespaces only", 0)
	p.run(t, "Uninstallation", 0)
	p.run(t, "Uninstallation", 2)

	p.run(t, "With kubectl", 0)
	m = startManager(t, bed, deployedFlags(t, bed), "weightedrollout-manager")
	wr := plan("web", "shop", required("10")...)
	create(t, bed, wr, "")
	reaches(t, bed, client.ObjectKeyFromObject(wr), "waiting for an approval", awaitsApproval)
	p.run(t, "Uninstallation", 3)
	if weight := canaryWeight(t, bed, "shop"); weight != 0 {
		t.Errorf("after the uninstallation the canary has weight %d, want 0", weight)
	}
	if err := m.Stop(); err != nil {
		t.Error(err)
	}
	for heading, blocks := range p.blocks {
		want := map[string]int{"Before": 1, "The image": 1, "With Helm": 4, "With kubectl": 1, "Does it run?": 2, "For some namespaces only": 1, "Upgrades": 1, "Uninstallation": 4}[heading]
		if len(blocks) != want {
			t.Errorf("below %q there are %d blocks of commands, and this test knows %d", heading, len(blocks), want)
		}
	}
}

// TestUpgradesKeepValues: helm upgrade forgets the values that were set before, and with
// them the image and the namespaces, unless it is told otherwise.
func TestUpgradesKeepValues(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	upgrades := 0
	for _, file := range append(files, filepath.Join(root, "README.md"), chart+"/README.md") {
		for _, block := range shellBlock.FindAllStringSubmatch(readFile(t, file), -1) {
			for line := range strings.SplitSeq(strings.ReplaceAll(block[1], "\\\n", " "), "\n") {
				if !strings.HasPrefix(line, "helm upgrade ") {
					continue
				}
				upgrades++
				if !strings.Contains(line, " --reset-then-reuse-values") {
					t.Errorf("%s: without --reset-then-reuse-values: %s", file, line)
				}
			}
		}
	}
	if upgrades < 4 {
		t.Errorf("the documentation shows %d upgrades, want more: is this test reading it rightly?", upgrades)
	}
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```")

// TestTemplatePage renders the values by which docs/notifications.md sets a template: the
// file that the flag names lies where the ConfigMap is mounted.
func TestTemplatePage(t *testing.T) {
	blocks := yamlBlock.FindAllStringSubmatch(readFile(t, filepath.Join(root, "docs/notifications.md")), -1)
	if len(blocks) != 1 {
		t.Fatalf("docs/notifications.md has %d blocks of YAML, want 1", len(blocks))
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(blocks[0][1]), &values); err != nil {
		t.Fatal(err)
	}
	deployment := find(t, objects(t, render(t, values)), "Deployment", "weightedrollout-manager")
	mounts, _, err := unstructured.NestedSlice(container(t, deployment), "volumeMounts")
	if err != nil {
		t.Fatal(err)
	}
	var at []string
	for _, m := range mounts {
		if mount, ok := m.(map[string]any); ok {
			at = append(at, fmt.Sprint(mount["name"], " at ", mount["mountPath"]))
		}
	}
	want := []string{"notifications at /etc/weightedrollout/notifications", "template at /etc/weightedrollout/template"}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("what is mounted (-want +got):\n%s", diff)
	}
	flags := args(t, deployment)
	for _, flag := range []string{"--notify-url-file=/etc/weightedrollout/notifications/url", "--notify-template-file=/etc/weightedrollout/template/template"} {
		if !slices.Contains(flags, flag) {
			t.Errorf("the controller's flags lack %s: %q", flag, flags)
		}
	}
}

// TestApproversPage runs what docs/security.md says about letting somebody approve.
func TestApproversPage(t *testing.T) {
	bed := cluster(t)
	if err := bed.CreateNamespace(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	p := readPage(t, bed, "docs/security.md")
	const heading = "Approvals and roles"
	binding := metav1.ObjectMeta{Namespace: "shop", Name: "release-managers"}
	create, check, ok := strings.Cut(p.blocks[heading][0], "\n")
	if !ok || !strings.Contains(create, binding.Name) {
		t.Fatalf("%s does not begin with a role binding below %q", p.file, heading)
	}
	p.blocks[heading] = []string{create, check}
	p.run(t, heading, 0)
	// The API server learns of a binding a moment later.
	eventually(t, "jane may approve", func() (bool, string) {
		out, _ := command(t.Context(), bed, "kubectl", strings.Fields(strings.TrimPrefix(check, "kubectl "))...)
		return strings.TrimSpace(out) == "yes", out
	})
}
