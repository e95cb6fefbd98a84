// Package install tests the ways onto a cluster against a real API server: the Helm
// chart, the manifests of config/default, and the policy on approvals that both bring.
// Pods are not run; what they would run is, with their service accounts' rights.
package install

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	// root is the repository's, seen from here; chart and the others are below it.
	root  = "../../.."
	chart = root + "/charts/weightedrollout"

	release = "weightedrollout"
	system  = "weightedrollout-system"

	// patience bounds every wait: it says when a test has failed, not how fast it has
	// to be.
	patience  = 3 * time.Minute
	pollEvery = 100 * time.Millisecond
)

// start brings up the cluster that config/default is applied to, when the first test
// asks for it.
var start = sync.OnceValues(func() (*testbed.Bed, error) {
	bed, err := testbed.Start(context.Background(), testbed.Options{ManagerRBAC: noRoles, CRDDirs: []string{"testdata/monitoring"}})
	if err != nil {
		return nil, err
	}
	running.Store(bed)
	out, err := command(context.Background(), bed, "kubectl", "apply", "--server-side", "--force-conflicts", "-k", root+"/config/default")
	if err != nil {
		return nil, fmt.Errorf("applying config/default: %w\n%s", err, out)
	}
	return bed, nil
})

var (
	// running is what TestMain has to stop, if any test has started it.
	running atomic.Pointer[testbed.Bed]
	// noRoles is an empty directory: the manager's roles are what is installed here.
	noRoles string
	// helmHome is where helm keeps what it keeps.
	helmHome string
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "weightedrollout-install-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	noRoles, helmHome = filepath.Join(dir, "roles"), filepath.Join(dir, "helm")
	if err := os.Mkdir(noRoles, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if bed := running.Load(); bed != nil {
		if code != 0 {
			bed.Keep()
			fmt.Fprintln(os.Stderr, "the bed's logs are kept in", bed.LogDir())
		}
		if err := bed.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the bed:", err)
			return 1
		}
	}
	return code
}

// cluster returns the cluster that config/default is applied to.
func cluster(t *testing.T) *testbed.Bed {
	t.Helper()
	bed, err := start()
	if err != nil {
		t.Fatalf("run `make test-e2e`, which builds what is needed: %v", err)
	}
	return bed
}

// binDir holds the programs that the tests run.
func binDir() string {
	if dir := os.Getenv("WEIGHTEDROLLOUT_BIN"); dir != "" {
		return dir
	}
	return filepath.Join(root, "bin")
}

// command runs a program of binDir and returns what it prints. bed is the cluster that
// it talks to, and may be nil.
func command(ctx context.Context, bed *testbed.Bed, name string, args ...string) (string, error) {
	return commandWith(ctx, bed, "", name, args...)
}

// commandWith also gives it an input.
func commandWith(ctx context.Context, bed *testbed.Bed, input, name string, args ...string) (string, error) {
	path, err := filepath.Abs(filepath.Join(binDir(), name))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = strings.NewReader(input)
	kubeconfig := os.DevNull
	if bed != nil {
		kubeconfig = bed.Kubeconfig
	}
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig,
		"HELM_CACHE_HOME="+helmHome+"/cache", "HELM_CONFIG_HOME="+helmHome+"/config", "HELM_DATA_HOME="+helmHome+"/data")
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, errOut.String())
	}
	return out.String(), nil
}

// mustRun runs a program that has to succeed.
func mustRun(t *testing.T, bed *testbed.Bed, name string, args ...string) string {
	t.Helper()
	out, err := command(t.Context(), bed, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// as returns a client for a person, who has no rights but those bound to the name.
func as(t *testing.T, bed *testbed.Bed, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(bed.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: bed.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// eventually waits for something that comes by itself.
func eventually(t *testing.T, what string, check func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	var last string
	for time.Now().Before(deadline) {
		var ok bool
		if ok, last = check(); ok {
			return
		}
		time.Sleep(pollEvery)
	}
	t.Fatalf("not within %s: %s; last seen: %s", patience, what, last)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// runIn runs a script in a directory.
func runIn(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, script))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}
