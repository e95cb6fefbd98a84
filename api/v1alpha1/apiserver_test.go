package v1alpha1_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// server is the one API server of this package's tests. It starts with the first
// test that asks for it, so that unit tests and fuzzing do without.
var server struct {
	once sync.Once
	bed  *testbed.Bed
	err  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	code := m.Run()
	if server.bed != nil {
		if err := server.bed.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// apiServer returns an API server that has the CRD. Starting it fails if the API
// server does not accept the CRD: a rule that does not compile, or one whose
// estimated cost is above the budget.
func apiServer(t *testing.T) *testbed.Bed {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real API server, which -short leaves out")
	}
	server.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		server.bed, server.err = testbed.Start(ctx, testbed.Options{BinDir: os.Getenv("WEIGHTEDROLLOUT_BIN")})
	})
	if server.err != nil {
		t.Fatalf("no API server to test the schema with: %v\nrun make test, which builds what is needed, or go test -short to do without", server.err)
	}
	return server.bed
}
