// Package dashboard tests the dashboard as a user has it: the command, a real API server,
// and the page in Chromium. The status of the rollouts is written by the test, so that
// every number on the page is known.
package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weightedrollout/weightedrollout/internal/cli"
	"github.com/weightedrollout/weightedrollout/internal/live"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	// root is the repository's, seen from here.
	root = "../../.."
	// patience bounds every wait: it says when a test has failed, not how fast it has to be.
	patience = 3 * time.Minute
)

var bed *testbed.Bed

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetLogger(logr.Discard())
	if testing.Short() {
		fmt.Println("skipped by -short: tests with a real API server")
		os.Exit(0)
	}
	os.Exit(testbed.RunTests(m, testbed.Options{Log: os.Stderr}, &bed))
}

// serve runs the command until the test ends, and returns the address that it prints.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	var said strings.Builder
	cmd := cli.NewCommand("test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: in, ErrOut: &said})
	cmd.SetArgs(append([]string{"dashboard", "--kubeconfig", bed.Kubeconfig}, args...))
	var ended sync.WaitGroup
	ended.Go(func() {
		err := cmd.ExecuteContext(ctx)
		_ = in.CloseWithError(fmt.Errorf("the command has ended: %w", err))
		if err != nil {
			t.Errorf("dashboard %v: %v\n%s", args, err, &said)
		}
	})
	t.Cleanup(func() { cancel(); ended.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("dashboard %v: %v\n%s", args, err, &said)
	}
	return strings.TrimSpace(line)
}

// controller is what the dashboard asks for evidence, in place of the manager.
type controller struct {
	*httptest.Server
	mu        sync.Mutex
	documents map[string]*live.Document // by path
}

func newController(t *testing.T) *controller {
	t.Helper()
	c := &controller{documents: map[string]*live.Document{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		document := c.documents[r.URL.Path]
		if document == nil {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error": "no evidence is gathered about it"}`)
			return
		}
		document.At = time.Now().UTC()
		if err := json.NewEncoder(w).Encode(document); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *controller) gather(d *live.Document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.documents[live.Prefix+d.Namespace+"/"+d.Name] = d
}
