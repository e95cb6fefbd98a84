package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weightedrollout/weightedrollout/internal/live"
)

// facts are what the script in the browser has to know.
type facts struct {
	// Orders and ReadOnly are the addresses of the page with orders, and without.
	Orders   string `json:"orders"`
	ReadOnly string `json:"readOnly"`
	Oracle   string `json:"oracle"`
	// Evidence is that of the rollout that is looked at in detail.
	Evidence *live.Document `json:"evidence"`
	// Evil is a text that would do harm as HTML.
	Evil     string `json:"evil"`
	Chromium string `json:"chromium"`
	// Pictures is a folder for pictures of what was checked; empty: none are wanted.
	Pictures string `json:"pictures"`
}

// scripts is where the script and its one module are.
const scripts = root + "/hack/screenshots"

// browser finds what the browser part needs, or says in one line what to install.
func browser() (node, chromium string, err error) {
	if node, err = exec.LookPath("node"); err != nil {
		return "", "", errors.New("there is no node: apt-get install -y nodejs npm")
	}
	for _, name := range []string{"chromium", "chromium-browser"} {
		if chromium, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return "", "", errors.New("there is no chromium: apt-get install -y chromium")
	}
	if _, err := os.Stat(filepath.Join(scripts, "node_modules", "playwright-core")); err != nil {
		return "", "", errors.New("there is no playwright-core: npm ci --prefix hack/screenshots")
	}
	return node, chromium, nil
}

// TestPage opens the page in Chromium and compares what it shows with what the API server
// has; hack/screenshots/check.mjs says what is checked.
func TestPage(t *testing.T) {
	node, chromium, err := browser()
	if err != nil && os.Getenv("WEIGHTEDROLLOUT_BROWSER") == "1" { // it is demanded
		t.Fatal(err)
	}
	createAll(t)
	c := newController(t)
	document := evidenceOf("shop", "checkout", 3)
	c.gather(document)
	orders := serve(t, "-A", "--allow-actions", "--evidence", c.URL)
	readOnly := serve(t, "-n", "blog", "--evidence", c.URL)
	checkByHand(t, orders, readOnly)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the page was not looked at in a browser:", err)
	} else {
		look(t, node, facts{
			Orders: orders, ReadOnly: readOnly, Evidence: document, Evil: evil, Chromium: chromium, Pictures: os.Getenv("WEIGHTEDROLLOUT_PICTURES"),
		})
	}
	giveByHand(t, orders)
}

// look runs the script in the browser.
func look(t *testing.T, node string, f facts) {
	t.Helper()
	f.Oracle = newOracle(t).URL
	content, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "check.mjs")
	cmd.Dir, cmd.Stdin = scripts, bytes.NewReader(content)
	out, err := cmd.CombinedOutput()
	fmt.Fprintf(os.Stderr, "%s", out)
	if err != nil {
		t.Fatalf("check.mjs: %v", err)
	}
}
