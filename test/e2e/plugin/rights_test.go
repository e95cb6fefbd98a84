package plugin

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	system  = "weightedrollout-system"
	service = "weightedrollout-metrics"
)

// bind gives a person a role in a namespace.
func bind(t *testing.T, p *person, in, kind, role string) {
	t.Helper()
	must(t, bed.Client.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, GenerateName: p.name + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: p.name}},
	}), "bind "+role)
}

// installApprovals installs the policy that says who may approve, and waits until it is in
// force for a person who may not.
func installApprovals(t *testing.T, p *person) {
	t.Helper()
	for _, name := range []string{"policy.yaml", "binding.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "approval", name))
		must(t, err, "read the policy")
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(text, object), "read the policy")
		must(t, bed.Client.Create(t.Context(), object), "create "+name)
	}
	config := rest.CopyConfig(bed.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + namespace + ":" + p.name
	as, err := client.New(config, client.Options{Scheme: bed.Client.Scheme()})
	must(t, err, "make a client")
	eventually(t, "the policy is in force", func() (bool, string) {
		wr := &v1alpha1.WeightedRollout{}
		must(t, as.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, wr), "read the rollout")
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.CommandAnnotation+`":"{}"}}}`))
		err := as.Patch(t.Context(), wr, patch, client.DryRunAll)
		return apierrors.IsForbidden(err), fmt.Sprint(err)
	})
}

// outside is an address of this machine that is not a loopback one: the API server
// refuses to have those as endpoints.
func outside(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err, "list the addresses of this machine")
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no address but loopback ones, and the API server reaches the manager at no other: give it a network interface")
	return ""
}

// startReplicas starts managers that take turns by a lease, as pods behind the Service of
// the manifests.
func startReplicas(t *testing.T, n int) {
	t.Helper()
	at := outside(t)
	must(t, bed.Client.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: service},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 8443}}},
	}), "create the Service")
	for i := range n {
		free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(at, "0"))
		must(t, err, "find a free port")
		port := free.Addr().(*net.TCPAddr).Port
		must(t, free.Close(), "free the port")
		m, err := bed.StartManager(t.Context(), testbed.ManagerOptions{Metrics: true, Args: []string{
			"--leader-elect=true", "--leader-election-namespace=" + system,
			"--metrics-bind-address=" + net.JoinHostPort(at, fmt.Sprint(port)),
		}})
		must(t, err, "start a manager")
		t.Cleanup(func() { must(t, m.Stop(), "stop a manager") })
		beAPod(t, fmt.Sprintf("manager-%d", i), at, int32(port))
	}
}

// beAPod lets the API server take an address for that of a pod of the Service.
func beAPod(t *testing.T, name, at string, port int32) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "manager", Image: "manager"}}},
	}
	must(t, bed.Client.Create(t.Context(), pod), "create a pod")
	pod.Status.PodIP, pod.Status.PodIPs = at, []corev1.PodIP{{IP: at}}
	must(t, bed.Client.Status().Update(t.Context(), pod), "give the pod its address")
	must(t, bed.Client.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: system, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{at}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: system, Name: name},
		}},
		Ports: []discoveryv1.EndpointPort{{Name: new("https"), Port: &port, Protocol: new(corev1.ProtocolTCP)}},
	}), "create the pod's EndpointSlice")
}

// through asks the manager for a path through the API server's proxy, with all the rights
// of an administrator there.
func through(t *testing.T, path string, headers map[string]string) (code int) {
	t.Helper()
	admin, err := rest.HTTPClientFor(bed.Config)
	must(t, err, "make a client")
	at := bed.Config.Host + "/api/v1/namespaces/" + system + "/services/https:" + service + ":https/proxy" + path
	// Only one of the replicas works, and the API server picks one at random.
	for range 50 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		must(t, err, "make a request")
		for k, v := range headers {
			req.Header.Set(k, v)
		}
		resp, err := admin.Do(req)
		must(t, err, "ask through the API server")
		must(t, resp.Body.Close(), "close the answer")
		if code = resp.StatusCode; code != http.StatusServiceUnavailable {
			break
		}
	}
	return code
}
