package testbed

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BackendPort is the port of every Service that the bed makes.
const BackendPort = 9898

// Backend is a Service with a podinfo process behind it.
type Backend struct {
	Namespace string
	Name      string
	// Address is the Service's ClusterIP, on which the process listens.
	Address string
	Port    int32

	bed *Bed

	mu      sync.Mutex
	process *Process
}

// StartPodinfo makes a Service with a ready endpoint, and a podinfo process that
// answers at its address. args are flags of podinfo, such as --random-error or
// --random-delay.
func (b *Bed) StartPodinfo(ctx context.Context, namespace, name string, args ...string) (*Backend, error) {
	backend, err := b.CreateService(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return backend, backend.Start(ctx, args...)
}

// CreateService makes a Service with a ready endpoint and no process behind it.
func (b *Bed) CreateService(ctx context.Context, namespace, name string) (*Backend, error) {
	address, err := b.network.address()
	if err != nil {
		return nil, fmt.Errorf("creating service %s/%s: %w", namespace, name, err)
	}
	if err := b.CreateNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	if err := b.create(ctx, newService(namespace, name, address)); err != nil {
		return nil, err
	}
	if err := b.create(ctx, newEndpointSlice(namespace, name, address)); err != nil {
		return nil, err
	}
	return &Backend{Namespace: namespace, Name: name, Address: address, Port: BackendPort, bed: b}, nil
}

func newService(namespace, name, address string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			ClusterIP: address,
			Ports:     []corev1.ServicePort{{Name: "http", Port: BackendPort, TargetPort: intstr.FromInt32(BackendPort)}},
		},
	}
}

// newEndpointSlice says that the Service has a ready pod. Slices refuse loopback
// addresses, so it names one that is set aside for documentation: readiness is
// all that is read from it.
func newEndpointSlice(namespace, service, address string) *discoveryv1.EndpointSlice {
	host := address[strings.LastIndexByte(address, '.')+1:]
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: service + "-testbed",
			Labels: map[string]string{
				discoveryv1.LabelServiceName: service,
				discoveryv1.LabelManagedBy:   "testbed.weightedrollout.dev",
			},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{"192.0.2." + host},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true)},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(BackendPort)), Protocol: new(corev1.ProtocolTCP)}},
	}
}

// SetReady says whether a Service that the bed made has a ready endpoint. The
// process behind it goes on answering.
func (b *Bed) SetReady(ctx context.Context, namespace, service string, ready bool) error {
	key := client.ObjectKey{Namespace: namespace, Name: service + "-testbed"}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		slice := &discoveryv1.EndpointSlice{}
		if err := b.Client.Get(ctx, key, slice); err != nil {
			return err
		}
		for i := range slice.Endpoints {
			slice.Endpoints[i].Conditions.Ready = new(ready)
			slice.Endpoints[i].Conditions.Serving = new(ready)
		}
		return b.Client.Update(ctx, slice)
	})
	if err != nil {
		return fmt.Errorf("setting service %s/%s ready=%t: %w", namespace, service, ready, err)
	}
	return nil
}

// URL is where the process answers, past the gateway.
func (b *Backend) URL() string {
	return "http://" + net.JoinHostPort(b.Address, fmt.Sprint(b.Port))
}

// Start starts the process, with flags of podinfo; after Stop, a new version of
// it at the same address.
func (b *Backend) Start(ctx context.Context, args ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process != nil && b.process.Running() {
		return fmt.Errorf("starting service %s/%s: %w", b.Namespace, b.Name, errors.New("it is running"))
	}
	binary, err := b.bed.binary("podinfo")
	if err != nil {
		return err
	}
	process, err := b.bed.start(ctx, command{
		// No grace: podinfo holds no data, and lingers for seconds to be polite to
		// load balancers.
		name: b.Namespace + "-" + b.Name, binary: binary,
		args: slices.Concat([]string{
			"--host=" + b.Address, fmt.Sprintf("--port=%d", b.Port),
			"--level=panic", "--config-path=.", "--ui-message=" + b.Name,
		}, args),
		ready: answersPort(b.URL() + "/healthz"),
	})
	if err != nil {
		return fmt.Errorf("starting service %s/%s: %w", b.Namespace, b.Name, err)
	}
	b.process = process
	return nil
}

// Stop ends the process; the Service and its endpoint stay.
func (b *Backend) Stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.process == nil {
		return nil
	}
	return b.process.Stop()
}

// Process returns the running process.
func (b *Backend) Process() *Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process
}

// answersPort is content with any answer: a podinfo that is told to fail fails
// its health checks too.
func answersPort(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("asking %s: %w", url, err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
}
