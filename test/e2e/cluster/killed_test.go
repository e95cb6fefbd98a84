package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/test/testcluster"
)

// victim is the value of the variable that makes this program start a cluster of its own,
// and wait to be killed.
const victim = "victim"

// testKilled kills a program that runs another cluster beside this one, as the kernel
// does when memory is short: nothing of that cluster may be left.
func testKilled(t *testing.T) {
	needsOwn(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), wanted+"="+victim)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	must(t, err, "start another cluster")
	in, err := cmd.StdinPipe() // its end, which is that of this program, ends the other one
	must(t, err, "start another cluster")
	defer in.Close()
	must(t, cmd.Start(), "start another cluster")
	line, err := bufio.NewReader(out).ReadString('\n')
	dir := strings.TrimSpace(line)
	if err != nil || !filepath.IsAbs(dir) {
		t.Fatalf("starting another cluster: %v: %q\n%s", err, line, log.String())
	}
	var containers []string
	eventually(t, "the other cluster has containers", func() (bool, string) {
		containers, err = filepath.Glob(filepath.Join(dir, "containerd", "io.containerd.grpc.v1.cri", "*", "*"))
		return err == nil && len(containers) > 0, fmt.Sprint(err)
	})
	t.Logf("the other cluster has %d processes and %d containers: %s", len(processesOf(t, dir)), len(containers), dir)
	must(t, cmd.Process.Kill(), "kill the program")
	_ = cmd.Wait() // it was killed
	eventually(t, "nothing is left of the other cluster", func() (bool, string) {
		var left []string
		for _, path := range append(cgroupsOf(containers), dir) {
			if _, err := os.Stat(path); err == nil {
				left = append(left, path)
			}
		}
		left = append(left, processesOf(t, dir)...)
		return len(left) == 0, fmt.Sprint(left)
	})
}

func cgroupsOf(containers []string) []string {
	var paths []string
	for _, c := range containers {
		found, _ := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", "*", filepath.Base(c))) // the pattern is right
		paths = append(paths, found...)
	}
	return paths
}

// processesOf are the processes whose command lines name a folder.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	must(t, err, "list the processes")
	var found []string
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(text, []byte(dir)) {
			found = append(found, e.Name()+" "+string(bytes.ReplaceAll(text, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// beVictim starts a cluster with a pod, says where it is, and waits for the end of its
// input.
func beVictim(ctx context.Context) int {
	image := testcluster.Image{Tag: "localhost/podinfo:victim", Program: "podinfo"}
	c, err := testcluster.Start(ctx, testcluster.Options{Module: moduleDir, Images: []testcluster.Image{image}, Log: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = runPod(ctx, c.Client, image.Tag)
	if err == nil {
		fmt.Println(c.Dir)
		_, err = io.Copy(io.Discard, os.Stdin)
	}
	if err = errors.Join(err, c.Stop(false)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// runPod runs a pod. It may have to wait for the service account of its namespace.
func runPod(ctx context.Context, c client.Client, image string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "podinfo"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "podinfo", Image: image, ImagePullPolicy: corev1.PullNever, Args: []string{"--config-path=/"},
		}}},
	}
	err := wait.PollUntilContextTimeout(ctx, pollEvery, patience, true, func(ctx context.Context) (bool, error) {
		return c.Create(ctx, pod.DeepCopy()) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("creating a pod: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, pollEvery, patience, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodRunning, err
	})
	if err != nil {
		return fmt.Errorf("running a pod: %w", err)
	}
	return nil
}
