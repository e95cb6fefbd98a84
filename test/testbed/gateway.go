package testbed

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// GatewayClassName is the class of the gateways that the bed's Traefik serves.
const GatewayClassName = "traefik"

// histogramBuckets are the upper bounds of Traefik's latency histogram in
// seconds. A limit on latency should be one of them.
const histogramBuckets = "0.005,0.01,0.025,0.05,0.1,0.25,0.4,0.5,1,1.5,2,2.5,3,5,10"

// Gateway is the running Traefik.
type Gateway struct {
	*Process
	// URL is where clients send their requests.
	URL string
	// MetricsURL is where Traefik tells its metrics.
	MetricsURL string
	// Port of the listener of every Gateway of the class.
	Port int

	bed *Bed
}

func (b *Bed) startGateway(ctx context.Context) error {
	binary, err := b.binary("traefik")
	if err != nil {
		return err
	}
	if err := b.grantGateway(ctx); err != nil {
		return err
	}
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: GatewayClassName},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: "traefik.io/gateway-controller"},
	}
	if err := b.create(ctx, class); err != nil {
		return err
	}
	gateway := &Gateway{bed: b}
	gateway.Process, err = b.startOnFreePorts(ctx, 2, func(ports []int) command {
		gateway.Port = ports[0]
		gateway.URL = "http://" + loopback(ports[0])
		status := "http://" + loopback(ports[1])
		gateway.MetricsURL = status + "/metrics"
		return command{
			name: "traefik", binary: binary, grace: 2 * time.Second,
			args:  append(b.traefikArgs(ports[0], ports[1]), b.options.GatewayArgs...),
			ready: answersOK(http.DefaultClient, status+"/ping"),
		}
	})
	if err != nil {
		return err
	}
	b.Gateway = gateway
	return nil
}

func (b *Bed) traefikArgs(webPort, statusPort int) []string {
	return []string{
		"--global.checknewversion=false", "--global.sendanonymoususage=false",
		"--log.level=WARN",
		"--entrypoints.web.address=" + loopback(webPort),
		"--entrypoints.web.transport.lifecycle.gracetimeout=1s",
		"--entrypoints.status.address=" + loopback(statusPort),
		"--ping=true", "--ping.entrypoint=status",
		// A route's weights take effect at once, not up to 2 s later.
		"--providers.providersthrottleduration=100ms",
		"--providers.kubernetesgateway=true",
		"--providers.kubernetesgateway.endpoint=" + b.access.server,
		"--providers.kubernetesgateway.token=" + b.access.tokens[gatewayUser],
		"--providers.kubernetesgateway.certauthfilepath=" + b.access.caFile(),
		// Traffic goes to the ClusterIP, where the backend's process listens.
		"--providers.kubernetesgateway.nativelbbydefault=true",
		"--metrics.prometheus=true", "--metrics.prometheus.entrypoint=status",
		"--metrics.prometheus.addserviceslabels=true",
		"--metrics.prometheus.buckets=" + histogramBuckets,
	}
}

// grantGateway gives Traefik the rights that its own documentation asks for.
func (b *Bed) grantGateway(ctx context.Context) error {
	read := []string{"get", "list", "watch"}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "testbed-gateway"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"namespaces", "services", "secrets", "configmaps"}, Verbs: read},
			{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
			{APIGroups: []string{gatewayv1.GroupName}, Resources: []string{"*"}, Verbs: read},
			{APIGroups: []string{gatewayv1.GroupName}, Resources: []string{
				"gatewayclasses/status", "gateways/status", "httproutes/status", "grpcroutes/status",
				"tcproutes/status", "tlsroutes/status", "referencegrants/status", "backendtlspolicies/status",
			}, Verbs: []string{"update", "patch"}},
		},
	}
	if err := b.create(ctx, role); err != nil {
		return err
	}
	return b.bindClusterRole(ctx, gatewayUser, role.Name)
}

// PlayGateway makes a Gateway that a test plays, and, once, the GatewayClass that names the
// controller that it plays.
func (b *Bed) PlayGateway(ctx context.Context, namespace, name, controller string) error {
	class := &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(controller, "/", "-")},
		Spec:       gatewayv1.GatewayClassSpec{ControllerName: gatewayv1.GatewayController(controller)},
	}
	if err := b.create(ctx, class); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return b.create(ctx, newGateway(namespace, name, class.Name, 80))
}

func newGateway(namespace, name, class string, port int) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: gatewayv1.GatewaySpec{
			GatewayClassName: gatewayv1.ObjectName(class),
			Listeners: []gatewayv1.Listener{{
				Name: "web", Protocol: gatewayv1.HTTPProtocolType, Port: gatewayv1.PortNumber(port),
				AllowedRoutes: &gatewayv1.AllowedRoutes{
					Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromAll)},
				},
			}},
		},
	}
}

// Create makes a Gateway with one HTTP listener, named web, to which routes of
// every namespace may attach, and waits until Traefik serves it.
func (g *Gateway) Create(ctx context.Context, namespace, name string) error {
	gateway := newGateway(namespace, name, GatewayClassName, g.Port)
	if err := g.bed.create(ctx, gateway); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, pollInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		err := g.bed.Client.Get(ctx, client.ObjectKeyFromObject(gateway), gateway)
		return meta.IsStatusConditionTrue(gateway.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed)), err
	})
	if err != nil {
		return fmt.Errorf("waiting for traefik to serve Gateway %s/%s: %w", namespace, name, err)
	}
	return nil
}
