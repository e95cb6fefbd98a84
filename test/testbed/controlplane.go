package testbed

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// NewScheme returns a scheme with Kubernetes' own types, CRDs, the Gateway API
// and this project's API.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, gatewayv1.Install, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

func (b *Bed) startControlPlane(ctx context.Context) error {
	etcdURL, err := b.startEtcd(ctx)
	if err != nil {
		return err
	}
	if b.access, err = newAccess(b.Dir); err != nil {
		return err
	}
	if err := b.startAPIServer(ctx, etcdURL); err != nil {
		return err
	}
	if b.Config, err = b.access.config(adminUser); err != nil {
		return err
	}
	if b.Kubeconfig, err = b.access.writeKubeconfig(adminUser, filepath.Join(b.Dir, "kubeconfig")); err != nil {
		return err
	}
	if b.ManagerKubeconfig, err = b.access.writeKubeconfig(ManagerUser, filepath.Join(b.Dir, "manager.kubeconfig")); err != nil {
		return err
	}
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	if b.Client, err = client.NewWithWatch(b.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

// ManagerConfig returns how the manager reaches the API server.
func (b *Bed) ManagerConfig() (*rest.Config, error) { return b.access.config(ManagerUser) }

func (b *Bed) startEtcd(ctx context.Context) (string, error) {
	binary, err := b.binary("etcd")
	if err != nil {
		return "", err
	}
	var url string
	_, err = b.startOnFreePorts(ctx, 2, func(ports []int) command {
		peer := "http://" + loopback(ports[1])
		url = "http://" + loopback(ports[0])
		return command{
			name: "etcd", binary: binary, grace: time.Second,
			args: []string{
				"--name=testbed",
				"--data-dir=" + filepath.Join(b.Dir, "etcd"),
				"--unsafe-no-fsync",
				"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
				"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
				"--initial-cluster=testbed=" + peer,
				"--log-level=warn",
			},
			ready: answersOK(http.DefaultClient, url+"/health"),
		}
	})
	return url, err
}

func (b *Bed) startAPIServer(ctx context.Context, etcdURL string) error {
	binary, err := b.binary("kube-apiserver")
	if err != nil {
		return err
	}
	_, err = b.startOnFreePorts(ctx, 1, func(ports []int) command {
		b.access.server = "https://" + loopback(ports[0])
		args := []string{
			"--etcd-servers=" + etcdURL,
			"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
			fmt.Sprintf("--secure-port=%d", ports[0]),
			"--cert-dir=" + b.access.certDir,
			"--endpoint-reconciler-type=none",
			"--authorization-mode=RBAC",
			"--token-auth-file=" + b.access.tokenFile,
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + b.access.saKeyFile,
			"--service-account-signing-key-file=" + b.access.saKeyFile,
			// Loopback addresses, so that a process can be a Service's backend.
			"--service-cluster-ip-range=" + b.network.cidr(),
			// No controller makes the service accounts that it would ask for.
			"--disable-admission-plugins=ServiceAccount",
		}
		return command{
			name: "kube-apiserver", binary: binary, grace: time.Second,
			args: append(args, b.options.APIServerArgs...), ready: b.apiServerReady,
		}
	})
	return err
}

// apiServerReady reads the certificate anew each time, since the API server only
// writes it while it starts.
func (b *Bed) apiServerReady(ctx context.Context) error {
	config, err := b.access.config(adminUser)
	if err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making a client for the API server: %w", err)
	}
	defer httpClient.CloseIdleConnections()
	return answersOK(httpClient, config.Host+"/readyz")(ctx)
}
