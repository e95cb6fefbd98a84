package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// controllers are those of kube-controller-manager that a rollout meets: they make
// pods of workloads, scale them, list them behind Services, and clear up.
var controllers = []string{
	"deployment-controller",
	"replicaset-controller",
	"statefulset-controller",
	"horizontal-pod-autoscaler-controller",
	"endpointslice-controller",
	// It removes the pods of workloads that were deleted.
	"garbage-collector-controller",
	// It empties namespaces that were deleted.
	"namespace-controller",
}

// StartControllerManager starts kube-controller-manager and waits until it answers.
// Pods become ready with StartKubelet only. There are no metrics: an autoscaler keeps
// the replicas between its minimum and its maximum, and looks every second.
func (b *Bed) StartControllerManager(ctx context.Context) (*Process, error) {
	binary, err := b.binary("kube-controller-manager")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := b.access.writeKubeconfig(controllerUser, filepath.Join(b.Dir, "kube-controller-manager.kubeconfig"))
	if err != nil {
		return nil, err
	}
	certDir := filepath.Join(b.Dir, "kube-controller-manager")
	began := time.Now()
	p, err := b.startOnFreePorts(ctx, 1, func(ports []int) command {
		return command{
			name: "kube-controller-manager", binary: binary, grace: time.Second,
			args: []string{
				"--kubeconfig=" + kubeconfig,
				"--controllers=" + strings.Join(controllers, ","),
				"--leader-elect=false",
				"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[0]),
				"--cert-dir=" + certDir,
				"--authentication-skip-lookup=true",
				"--kube-api-qps=200", "--kube-api-burst=400",
				"--horizontal-pod-autoscaler-sync-period=1s",
			},
			ready: answersTrusted("https://"+loopback(ports[0]), "/healthz", filepath.Join(certDir, "kube-controller-manager.crt")),
		}
	})
	if err != nil {
		return nil, fmt.Errorf("starting kube-controller-manager: %w", err)
	}
	b.report("kube-controller-manager", time.Since(began))
	return p, nil
}

// answersTrusted returns a readiness check for a server that writes the certificate
// that it answers with to a file while it starts.
func answersTrusted(host, path, caFile string) func(context.Context) error {
	return func(ctx context.Context) error {
		httpClient, err := rest.HTTPClientFor(&rest.Config{Host: host, TLSClientConfig: rest.TLSClientConfig{CAFile: caFile}})
		if err != nil {
			return fmt.Errorf("making a client for %s: %w", host, err)
		}
		defer httpClient.CloseIdleConnections()
		return answersOK(httpClient, host+path)(ctx)
	}
}
