package dashboard

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/dashboard"
)

// visitor is a program with cookies, which has shown the secret of an address.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
}

func visit(t *testing.T, address string) *visitor {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, base: "http://" + at.Host, client: &http.Client{Jar: jar, Timeout: patience}}
	if status, body := v.post("/api/session", `{"token":"`+strings.TrimPrefix(at.Fragment, "token=")+`"}`); status != http.StatusNoContent {
		t.Fatalf("the address that was printed does not open the page: %d %s", status, body)
	}
	return v
}

func (v *visitor) post(path, body string) (status int, answer string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.base+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// first reads the stream up to the first message with a name.
func (v *visitor) first(path, name string, into any) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, v.base+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	resp, err := v.client.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines, event := bufio.NewScanner(resp.Body), ""; lines.Scan(); {
		if is, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			event = is
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && event == name {
			if err := json.Unmarshal([]byte(data), into); err != nil {
				v.t.Fatal(err)
			}
			return
		}
	}
	v.t.Fatalf("the stream has ended without %s", name)
}

// checkByHand looks at the stream without a browser.
func checkByHand(t *testing.T, orders, readOnly string) {
	t.Helper()
	var rows dashboard.Rows
	visit(t, orders).first("/api/stream", "rows", &rows)
	got := map[string]string{}
	for _, r := range rows.Rows {
		got[r.Key] = r.Phase + " " + r.Position + " " + r.Desired
	}
	want := map[string]string{
		"shop/checkout": "Progressing 2/4 20", "shop/payments": "AwaitingApproval 3/4 50", "shop/search": "RolledBack 2/4 0",
		"shop/basket": "Pending  ", "blog/front": "Completed 4/4 100",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rollouts of all namespaces (-want +got):\n%s", diff)
	}
	only := visit(t, readOnly)
	var few dashboard.Rows
	only.first("/api/stream", "rows", &few)
	if len(few.Rows) != 1 || few.Rows[0].Key != "blog/front" {
		t.Errorf("rollouts of one namespace: %+v", few.Rows)
	}
	if status, body := only.post("/api/order", `{"rollout":"blog/front","verb":"pause","stand":{"uid":"","revision":"77","attempt":1,"stage":3}}`); status != http.StatusForbidden || !strings.Contains(body, "--allow-actions") {
		t.Errorf("an order to a page that only shows: %d %s", status, body)
	}
}

// giveByHand gives orders without a browser, and compares what is written.
func giveByHand(t *testing.T, orders string) {
	t.Helper()
	v := visit(t, orders)
	shown := func(of string) string {
		var d dashboard.Detail
		v.first("/api/stream?rollout="+of, "detail", &d)
		stand, err := json.Marshal(d.Stand)
		if err != nil {
			t.Fatal(err)
		}
		return string(stand)
	}
	give := func(of, verb, stand string, want int) {
		if status, body := v.post("/api/order", `{"rollout":"`+of+`","verb":"`+verb+`","stand":`+stand+`}`); status != want {
			t.Errorf("%s %s: %d %s, want %d", verb, of, status, body, want)
		}
	}
	read := func(name string) *v1alpha1.WeightedRollout {
		wr := &v1alpha1.WeightedRollout{}
		if err := bed.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, wr); err != nil {
			t.Fatal(err)
		}
		return wr
	}
	// The revision is rolled back: no abort, but a retry.
	search := shown("shop/search")
	give("shop/search", "abort", search, http.StatusConflict)
	give("shop/search", "retry", search, http.StatusOK)
	var command v1alpha1.Command
	if err := json.Unmarshal([]byte(read("search").Annotations[v1alpha1.CommandAnnotation]), &command); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v1alpha1.Command{Verb: v1alpha1.VerbRetry, Attempt: 1}, command, cmpopts.IgnoreFields(v1alpha1.Command{}, "ID")); diff != "" || command.ID == "" {
		t.Errorf("command %q (-want +got):\n%s", command.ID, diff)
	}
	// A page that is behind does not abort the attempt after the one that it shows.
	old := shown("shop/payments")
	if _, err := play(t.Context(), "next-attempt", client.ObjectKey{Namespace: "shop", Name: "payments"}); err != nil {
		t.Fatal(err)
	}
	give("shop/payments", "abort", old, http.StatusConflict)
	if wr := read("payments"); wr.Annotations[v1alpha1.AbortAnnotation] != "" {
		t.Errorf("annotations of payments: %v", wr.Annotations)
	}
	// A pause is a field of the spec, and so is its end.
	give("shop/basket", "pause", shown("shop/basket"), http.StatusOK)
	if !read("basket").Spec.Paused {
		t.Error("basket is not paused")
	}
}
