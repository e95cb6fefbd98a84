package cluster

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// clone is what a clone of the repository is for pasted commands: with the sample changed
// as the page says, to this cluster's Gateway and Prometheus.
func clone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"charts", "config"} {
		must(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(moduleDir, name))), "copy "+name)
	}
	sample := filepath.Join(dir, "config", "samples", "first.yaml")
	text, err := os.ReadFile(sample)
	must(t, err, "read the sample")
	changed := strings.NewReplacer("name: traefik-gateway", "name: public", "namespace: traefik", "namespace: "+gatewayNamespace, "http://prometheus.monitoring:9090", prometheusAddress(t)).Replace(string(text))
	must(t, os.WriteFile(sample, []byte(changed), 0o600), "change the sample")
	return dir
}

// paste runs a block of commands of a page, as it stands below a heading; of those that never
// end, only what comes before.
func paste(t *testing.T, dir, file, heading string, block int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(moduleDir, file))
	must(t, err, "read "+file)
	_, part, found := strings.Cut(string(text), "\n## "+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	blocks := shellBlock.FindAllStringSubmatch(part, -1)
	if !found || block >= len(blocks) {
		t.Fatalf("%s has no block of commands number %d below %q", file, block, heading)
	}
	commands, _, _ := strings.Cut(blocks[block][1], "kubectl get wr -n shop -w\n")
	t.Logf("%s, %q:\n%s", file, heading, commands)
	return shell(t, dir, commands)
}

// shell runs commands in the cluster's network, with the programs of bin on the path.
func shell(t *testing.T, dir, commands string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := cluster.Command(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(moduleDir, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s\n%s", err, commands, out, podsOfSystem())
	}
	t.Logf("%s", out)
	return string(out)
}

// testPages pastes what the README and docs/install.md say: the installation with Helm, a
// first rollout with the sample, how to look at it and to steer it, the removal, and the
// installation with kubectl.
func testPages(t *testing.T) {
	needsOwn(t)
	helm(t, "uninstall", release, "--namespace="+systemNamespace, "--ignore-not-found", "--wait", "--timeout=5m")
	dir := clone(t)

	paste(t, dir, "README.md", "Install", 0)
	shell(t, dir, "kubectl rollout status deployment/weightedrollout-manager -n weightedrollout-system --timeout=5m")
	paste(t, dir, "README.md", "A first rollout", 0)
	wr := &v1alpha1.WeightedRollout{}
	eventually(t, "the first percent", func() (bool, string) {
		err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "checkout"}, wr)
		share := wr.Status.Share
		return err == nil && share.Desired != nil && *share.Desired == "1" && share.ConfirmedAt != nil, "phase " + string(wr.Status.Phase)
	})
	// The plugin reads the live evidence through the API server, with nothing but the
	// rollout's uid.
	if out := shell(t, dir, "kubectl weightedrollout status checkout -n shop"); !strings.Contains(out, "Live numbers") || !strings.Contains(out, "1 percent") {
		t.Error("status does not have the live numbers")
	}
	shell(t, dir, "kubectl weightedrollout get -A && kubectl weightedrollout history checkout -n shop")
	shell(t, dir, "kubectl weightedrollout pause checkout -n shop && kubectl weightedrollout resume checkout -n shop")
	paste(t, dir, "README.md", "Watch and steer it", 1)
	eventually(t, "it is aborted", func() (bool, string) {
		err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "checkout"}, wr)
		return err == nil && wr.Status.Phase == v1alpha1.PhaseRolledBack, "phase " + string(wr.Status.Phase)
	})
	paste(t, dir, "docs/install.md", "Uninstallation", 0)
	shell(t, dir, "kubectl delete namespace shop --timeout=2m && kubectl delete crd weightedrollouts.weightedrollout.dev && kubectl delete namespace weightedrollout-system --timeout=2m")

	paste(t, dir, "docs/install.md", "With kubectl", 0)
	paste(t, dir, "docs/install.md", "Does it run?", 0)
}
