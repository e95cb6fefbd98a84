package testcluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/test/auditlog"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const etcdURL = "http://127.0.0.1:2379"

// auditPolicy writes down every request of a pod, and nobody else's.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

// startControlPlane starts etcd and kube-apiserver, and makes the clients.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	if err := c.writeSecrets(); err != nil {
		return err
	}
	if err := os.WriteFile(c.path("audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	if _, err := c.start(ctx, "etcd", c.answers(etcdURL+"/health"),
		"--name="+NodeName, "--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn"); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	var err error
	if c.Config, err = c.config(adminUser); err != nil {
		return err
	}
	if c.Kubeconfig, err = c.writeKubeconfig(adminUser); err != nil {
		return err
	}
	scheme, err := testbed.NewScheme()
	if err != nil {
		return err
	}
	if c.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	began := time.Now()
	p, err := c.start(ctx, "kube-apiserver", c.apiServerReady,
		"--etcd-servers="+etcdURL,
		"--advertise-address="+nodeAddress,
		"--cert-dir="+c.path("apiserver"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--token-auth-file="+c.path("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.path("service-account.key"),
		"--service-account-signing-key-file="+c.path("service-account.key"),
		"--service-cluster-ip-range="+serviceRange,
		"--allow-privileged=true",
		"--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file="+c.path("audit.yaml"),
		"--audit-log-path="+c.auditPath(),
		"--audit-log-maxsize=1000",
	)
	c.starts = append(c.starts, auditlog.Period{From: began, To: time.Now()})
	if err == nil {
		c.apiServer = p
	}
	return err
}

// KillAPIServer ends kube-apiserver as a crash would. StartAPIServer starts it again.
func (c *Cluster) KillAPIServer() error { return c.apiServer.Kill() }

// StartAPIServer starts kube-apiserver again after KillAPIServer.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	if err := c.startAPIServer(ctx); err != nil {
		return fmt.Errorf("starting kube-apiserver again: %w", err)
	}
	return nil
}

// startControllers starts kube-controller-manager and kube-scheduler.
func (c *Cluster) startControllers(ctx context.Context) error {
	controllers, err := c.writeKubeconfig(controllerUser)
	if err != nil {
		return err
	}
	scheduler, err := c.writeKubeconfig(schedulerUser)
	if err != nil {
		return err
	}
	if _, err := c.start(ctx, "kube-controller-manager", nil,
		"--kubeconfig="+controllers, "--leader-elect=false", "--bind-address=127.0.0.1",
		"--cert-dir="+c.path("kube-controller-manager"), "--authentication-skip-lookup=true",
		"--root-ca-file="+c.certificate(),
		"--service-account-private-key-file="+c.path("service-account.key"),
		"--kube-api-qps=200", "--kube-api-burst=400"); err != nil {
		return err
	}
	_, err = c.start(ctx, "kube-scheduler", nil,
		"--kubeconfig="+scheduler, "--leader-elect=false", "--bind-address=127.0.0.1",
		"--cert-dir="+c.path("kube-scheduler"), "--authentication-skip-lookup=true")
	return err
}

// start starts a program of the cluster in its network.
func (c *Cluster) start(ctx context.Context, name string, ready func(context.Context) error, args ...string) (*testbed.Process, error) {
	path, err := c.program(name)
	if err != nil {
		return nil, err
	}
	return c.supervisor.Start(ctx, testbed.Command{
		Name: name, Binary: "nsenter", Ready: ready,
		Args: c.entering(append([]string{path}, args...)...),
	})
}

// apiServerReady reads the certificate anew each time, since the API server only
// writes it while it starts.
func (c *Cluster) apiServerReady(ctx context.Context) error {
	config, err := c.config(adminUser)
	if err != nil {
		return err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("making a client for the API server: %w", err)
	}
	return answersOK(ctx, &http.Client{Transport: transport}, config.Host+"/readyz")
}

// answers returns a readiness check: a GET of a URL in the cluster's network answers 200.
func (c *Cluster) answers(url string) func(context.Context) error {
	return func(ctx context.Context) error { return answersOK(ctx, c.HTTPClient(), url) }
}

// HTTPClient returns a client that is in the cluster's network. It keeps no connection.
func (c *Cluster) HTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: c.DialContext, DisableKeepAlives: true}, Timeout: dialTimeout}
}

func answersOK(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", url, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

func (c *Cluster) auditPath() string { return filepath.Join(c.LogDir(), "audit.log") }

// Audit reads what the API server has written down about the requests of a service
// account.
func (c *Cluster) Audit(namespace, serviceAccount string) (*auditlog.Log, error) {
	return auditlog.ReadFile(c.auditPath(), "system:serviceaccount:"+namespace+":"+serviceAccount, c.starts...)
}
