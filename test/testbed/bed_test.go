package testbed

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// bareBed is a bed without an API server, to try its processes with.
func bareBed(t *testing.T) *Bed {
	t.Helper()
	assets := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(assets, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bed, err := newBed(t.Context(), Options{Dir: t.TempDir(), Assets: assets})
	if err != nil {
		t.Fatalf("newBed: %v", err)
	}
	t.Cleanup(func() {
		if err := bed.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
	return bed
}

func shell(name, script string, grace time.Duration) command {
	return command{name: name, binary: "/bin/sh", args: []string{"-c", script}, grace: grace}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	bed := bareBed(t)
	c := shell("deaf", `trap "" TERM; echo up; while :; do sleep 0.05; done`, 200*time.Millisecond)
	p, err := bed.start(t.Context(), c)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	for !strings.Contains(p.LogTail(), "up") {
		time.Sleep(10 * time.Millisecond)
	}
	if err := p.Stop(); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	if p.Running() {
		t.Error("the process is still running")
	}
	if err := bed.Err(); err != nil {
		t.Errorf("an end that was asked for failed the bed: %v", err)
	}
}

func TestUnexpectedEndShowsTheLog(t *testing.T) {
	bed := bareBed(t)
	ctx, cancel := bed.Context(t.Context())
	defer cancel()
	p, err := bed.start(t.Context(), shell("brief", "echo the reason; exit 3", 0))
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	<-ctx.Done()
	var exit *ExitError
	if err := bed.Err(); !errors.As(err, &exit) {
		t.Fatalf("Err() = %v, want an ExitError", err)
	}
	if exit.Name != "brief" || !strings.Contains(exit.Error(), "the reason") || !strings.Contains(exit.Error(), "exit status 3") {
		t.Errorf("the error does not say what happened: %v", exit)
	}
	if p.Running() {
		t.Error("the process is said to be running")
	}
}

// Linux kills a child when the thread that forked it ends, which is what the end
// of a parent comes to.
func TestChildrenDieWithTheLauncher(t *testing.T) {
	bed := bareBed(t)
	p, err := bed.start(t.Context(), shell("orphan", "exec sleep 600", 0))
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	p.expected.Store(true)
	bed.launcher.close()
	select {
	case <-p.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the process outlived the thread that started it")
	}
	if state, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || state.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v, want killed", p.cmd.ProcessState)
	}
}

// The process's first thread never ends before the process, so that no launcher may
// run on it, whichever thread the scheduler offers.
func TestLauncherIsNeverOnTheFirstThread(t *testing.T) {
	for i := range 100 {
		l := newLauncher()
		cmd := exec.CommandContext(t.Context(), "sleep", "600")
		if err := l.start(cmd); err != nil {
			t.Fatal(err)
		}
		l.close()
		done := make(chan struct{})
		go func() {
			_ = cmd.Wait() // it was killed
			close(done)
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			_ = cmd.Process.Kill()
			t.Fatalf("child %d outlived the thread that started it", i)
		}
	}
}

func TestBedsDoNotShareAddresses(t *testing.T) {
	seen := map[string]bool{}
	for range 20 {
		bed := bareBed(t)
		if seen[bed.network.cidr()] {
			t.Fatalf("two beds got %s", bed.network.cidr())
		}
		seen[bed.network.cidr()] = true
	}
}

func TestMissingBinaryIsNamed(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("WEIGHTEDROLLOUT_BIN", "")
	empty := t.TempDir()
	_, err := Start(t.Context(), Options{BinDir: empty, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "etcd") || !strings.Contains(err.Error(), empty) {
		t.Errorf("Start = %v, want an error that names etcd and the directory", err)
	}
}

// needBinaries skips a test where the real parts have not been built.
func needBinaries(t *testing.T, names ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("this test starts an API server")
	}
	paths, err := findModules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bed := &Bed{options: withDefaults(Options{}, paths)}
	for _, name := range names {
		if _, err := bed.binary(name); err != nil {
			t.Skipf("this test needs the real parts: %v", err)
		}
	}
}

func TestControlPlane(t *testing.T) {
	needBinaries(t, "etcd", "kube-apiserver")
	ctx := t.Context()
	bed, err := Start(ctx, Options{})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	dir := bed.Dir
	t.Cleanup(func() {
		if err := bed.Stop(); err != nil {
			t.Errorf("Stop: %v", err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the bed's directory is still there: %v", err)
		}
	})
	for _, list := range []client.ObjectList{&gatewayv1.HTTPRouteList{}, &v1alpha1.WeightedRolloutList{}} {
		if err := bed.Client.List(ctx, list); err != nil {
			t.Errorf("listing %T: %v", list, err)
		}
	}
	backend, err := bed.CreateService(ctx, "shop", "web-stable")
	if err != nil {
		t.Fatalf("CreateService: %v", err)
	}
	service := &corev1.Service{}
	if err := bed.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web-stable"}, service); err != nil {
		t.Fatal(err)
	}
	if service.Spec.ClusterIP != backend.Address {
		t.Errorf("the service has address %s, want %s", service.Spec.ClusterIP, backend.Address)
	}
	if err := bed.SetReady(ctx, "shop", "web-stable", false); err != nil {
		t.Errorf("SetReady: %v", err)
	}
	for _, path := range []string{bed.Kubeconfig, bed.ManagerKubeconfig} {
		if filepath.Dir(path) != bed.Dir {
			t.Errorf("%s is not in the bed's directory %s", path, bed.Dir)
		}
	}
}
