// Package played tests the manager's binary against a real API server, with a
// gateway and a Prometheus that the tests play themselves: what those say can be
// chosen to the bit, and every request that the manager makes is on record.
package played

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// foreignField is a field of a route's rules and backendRefs that no Go type knows.
const foreignField = "x-test"

// shared is what all tests of this package use: one API server, and one gateway.
type shared struct {
	bed     *testbed.Bed
	gateway *playedGateway
	stop    context.CancelFunc
}

// start brings the bed up when the first test asks for it, so that -short and
// -list start nothing.
var start = sync.OnceValues(func() (*shared, error) {
	bed, err := testbed.Start(context.Background(), testbed.Options{BinDir: os.Getenv("WEIGHTEDROLLOUT_BIN")})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &shared{bed: bed, gateway: newPlayedGateway(bed.Client), stop: cancel}
	running.Store(s)
	if err := addForeignField(ctx, bed.Client); err != nil {
		return nil, err
	}
	return s, s.gateway.start(ctx)
})

// running is what TestMain has to stop, if any test has started it.
var running atomic.Pointer[shared]

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	// The tests wait for most of their time, so more of them than there are cores
	// can run at once.
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = flag.Set("test.parallel", "6")
	}
	code := m.Run()
	if s := running.Load(); s != nil {
		if code != 0 {
			s.bed.Keep()
			fmt.Fprintln(os.Stderr, "the bed's logs are kept in", s.bed.LogDir())
		}
		s.stop()
		if err := s.bed.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the bed:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// addForeignField gives the HTTPRoute's schema a field that our Go types do not
// know, as a later version of the Gateway API would, and waits until it is served.
func addForeignField(ctx context.Context, c client.Client) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: "httproutes.gateway.networking.k8s.io"}, crd); err != nil {
			return err
		}
		for i := range crd.Spec.Versions {
			spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
			rule := spec.Properties["rules"].Items.Schema
			rule.Properties[foreignField] = apiextensionsv1.JSONSchemaProps{Type: "string"}
			rule.Properties["backendRefs"].Items.Schema.Properties[foreignField] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		return c.Update(ctx, crd)
	})
	if err != nil {
		return fmt.Errorf("adding a field to the HTTPRoute's schema: %w", err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(pollEvery) {
		probe := foreignRoute(metav1.NamespaceDefault, "probe")
		err := c.Create(ctx, probe, client.DryRunAll)
		if err == nil {
			rules, _, _ := unstructured.NestedSlice(probe.Object, "spec", "rules")
			if rule, ok := rules[0].(map[string]any); ok && rule[foreignField] != nil {
				return nil
			}
		} else if !errors.IsNotFound(err) && !errors.IsServiceUnavailable(err) {
			return fmt.Errorf("trying the new field: %w", err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the API server does not serve the new field")
		}
	}
}
