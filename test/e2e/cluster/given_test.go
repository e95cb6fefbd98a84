package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
	"github.com/weightedrollout/weightedrollout/test/testcluster"
)

const (
	// given is the value of the variable with which the tests run on the cluster that
	// KUBECONFIG names, and imageVariable says which image of the controller it is to run.
	given         = "given"
	imageVariable = "WEIGHTEDROLLOUT_E2E_IMAGE"

	traefikController = "traefik.io/gateway-controller"
	definition        = "weightedrollouts.weightedrollout.dev"
	routeDefinition   = "httproutes.gateway.networking.k8s.io"

	// cleanupPatience bounds the removal of all that the tests have made.
	cleanupPatience = 5 * time.Minute
)

// namespaces are all those that the tests make in a given cluster.
var namespaces = []string{
	systemNamespace, gatewayNamespace, monitoringNamespace,
	"e2e-good", "e2e-bad", "e2e-workloads", "e2e-leader", "e2e-outages", "e2e-upgrade", "e2e-uninstall",
}

// beGuest runs the tests on a given cluster, if nothing that is there already is in the
// way, and takes away again what they have made.
func beGuest(ctx context.Context, m *testing.M) int {
	_, _, err := givenImage()
	var s *site
	if err == nil {
		s, err = openGiven()
	}
	if err == nil {
		defer os.RemoveAll(s.Dir)
		err = s.checkFree(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "make e2e-cluster KUBECONFIG=…:", err)
		return 1
	}
	fmt.Fprintf(os.Stderr, "running on the cluster at %s\n", s.config.Host)
	hadRoutes, err := s.hasDefinition(ctx, routeDefinition)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cluster = s
	ended := make(chan int, 1)
	go func() { ended <- m.Run() }()
	code := 130
	select {
	case code = <-ended:
	case <-ctx.Done():
		// What waits ends at its next look, so that nothing is made any more.
		s.interrupted.Store(true)
		select {
		case <-ended:
		case <-time.After(time.Minute):
		}
	}
	fmt.Fprintln(os.Stderr, "removing what the tests have made")
	if err := s.clean(!hadRoutes); err != nil {
		fmt.Fprintln(os.Stderr, "removing what the tests have made:", err)
		return max(code, 1)
	}
	return code
}

// givenImage is the image of the controller that the cluster is to run.
func givenImage() (repository, tag string, err error) {
	image := os.Getenv(imageVariable)
	i := strings.LastIndex(image, ":")
	if i <= strings.LastIndex(image, "/") {
		return "", "", fmt.Errorf("IMAGE is %q: write registry/name:tag of an image of the controller that the cluster can pull; make image makes one", image)
	}
	return image[:i], image[i+1:], nil
}

// openGiven reads KUBECONFIG as kubectl does: of several files, the present context.
func openGiven() (*site, error) {
	s := &site{kubeconfig: os.Getenv("KUBECONFIG")}
	if s.kubeconfig == "" {
		return nil, errors.New("KUBECONFIG is empty: it names the file by which kubectl reaches the cluster")
	}
	var err error
	s.config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{Precedence: strings.Split(s.kubeconfig, string(os.PathListSeparator))}, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading KUBECONFIG=%s: %w", s.kubeconfig, err)
	}
	s.config.QPS = -1
	rest.AddUserAgent(s.config, "weightedrollout-e2e")
	scheme, err := testbed.NewScheme()
	if err != nil {
		return nil, err
	}
	if s.Client, err = client.NewWithWatch(s.config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("reaching the cluster at %s: %w", s.config.Host, err)
	}
	if s.Dir, err = os.MkdirTemp("", "weightedrollout-e2e-"); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *site) hasDefinition(ctx context.Context, name string) (bool, error) {
	err := s.Client.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
	}
	return true, nil
}

// checkFree refuses a cluster in which something would be changed that is not the tests'.
func (s *site) checkFree(ctx context.Context) error {
	if has, err := s.hasDefinition(ctx, definition); err != nil {
		return err
	} else if has {
		return fmt.Errorf("CustomResourceDefinition %s is there already: WeightedRollout is installed in this cluster, and the tests would remove it", definition)
	}
	var there corev1.NamespaceList
	if err := s.Client.List(ctx, &there); err != nil {
		return fmt.Errorf("listing the namespaces: %w", err)
	}
	for _, n := range there.Items {
		if slices.Contains(namespaces, n.Name) {
			return fmt.Errorf("namespace %s is there already, and the tests would delete it: delete it first, if an earlier run has left it", n.Name)
		}
	}
	var classes gatewayv1.GatewayClassList
	if err := s.Client.List(ctx, &classes); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("listing the GatewayClasses: %w", err)
	}
	for _, c := range classes.Items {
		if c.Spec.ControllerName == traefikController {
			return fmt.Errorf("GatewayClass %s belongs to a Traefik that is there already, and would serve the tests' Gateway beside their own", c.Name)
		}
	}
	return nil
}

// clean removes all that the tests have made, also when they were interrupted.
func (s *site) clean(routes bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupPatience)
	defer cancel()
	run := func(name string, args ...string) error {
		if out, err := s.Command(ctx, name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
		return nil
	}
	errs := []error{
		run("helm", "uninstall", release, "--namespace="+systemNamespace, "--ignore-not-found", "--wait", "--timeout=2m"),
		s.letGo(ctx),
		run("kubectl", append([]string{"delete", "namespace", "--ignore-not-found"}, namespaces...)...),
		run("kubectl", "delete", "clusterrole,clusterrolebinding", "--ignore-not-found", "e2e-traefik"),
		run("kubectl", "delete", "crd", "--ignore-not-found", definition),
	}
	if has, err := s.hasDefinition(ctx, routeDefinition); err != nil {
		errs = append(errs, err)
	} else if has {
		errs = append(errs, run("kubectl", "delete", "gatewayclass", "--ignore-not-found", "e2e-traefik"))
	}
	if routes {
		errs = append(errs, run("kubectl", "delete", "--ignore-not-found", "-f", gatewayDefinitions()))
	}
	return errors.Join(errs...)
}

// letGo takes the finalizers away of rollouts whose controller is gone.
func (s *site) letGo(ctx context.Context) error {
	var rollouts v1alpha1.WeightedRolloutList
	err := s.Client.List(ctx, &rollouts)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil
	}
	errs := []error{err}
	for _, wr := range rollouts.Items {
		before := client.MergeFrom(wr.DeepCopy())
		wr.Finalizers = nil
		errs = append(errs, client.IgnoreNotFound(s.Client.Patch(ctx, &wr, before)))
	}
	return errors.Join(errs...)
}

// testGiven runs these tests on a cluster that is given to them: another one, which has
// nothing in it yet. They refuse this one, and leave nothing behind in that one.
func testGiven(t *testing.T) {
	needsOwn(t)
	if out, err := guest(t, cluster.own, "TestCluster/None").CombinedOutput(); err == nil || !strings.Contains(string(out), "WeightedRollout is installed in this cluster") {
		t.Errorf("the tests ran where WeightedRollout is installed: %v\n%s", err, out)
	}
	other, err := testcluster.Start(t.Context(), testcluster.Options{Module: moduleDir, Images: images, Log: os.Stderr})
	must(t, err, "start another cluster")
	defer func() { must(t, other.Stop(t.Failed()), "stop the other cluster") }()
	before := contents(t, other)
	out, err := guest(t, other, "TestCluster/(Rollouts|LeaderKilled|Outages|Upgrade|Uninstall)$/Good").CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !bytes.Contains(out, []byte("--- PASS: TestCluster/Uninstall")) {
		t.Errorf("the tests failed on a given cluster: %v", err)
	}
	if after := contents(t, other); !slices.Equal(before, after) {
		t.Errorf("the cluster held\n%v\nbefore, and holds\n%v\nnow", before, after)
	}
}

// guest is a run of some of these tests on a cluster that is given by a kubeconfig file.
func guest(t *testing.T, on *testcluster.Cluster, tests string) *exec.Cmd {
	t.Helper()
	cmd := on.Command(t.Context(), os.Args[0], "-test.v", "-test.run="+tests)
	cmd.Env = append(cmd.Env, wanted+"="+given, imageVariable+"="+managerRepository+":"+managerTag)
	return cmd
}

// contents lists what a cluster holds that is not in a namespace, and the namespaces.
func contents(t *testing.T, c *testcluster.Cluster) []string {
	t.Helper()
	out, err := c.Command(t.Context(), "kubectl", "get", "--output=name",
		"namespaces,crd,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings").CombinedOutput()
	if err != nil {
		t.Fatalf("listing what a cluster holds: %v\n%s", err, out)
	}
	lines := strings.Fields(string(out))
	slices.Sort(lines)
	return lines
}
