package notify_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weightedrollout/weightedrollout/internal/notify"
)

const secretPath = "/services/T000/B000/s3cr3t"

// receiver plays a webhook. It answers with the codes in turn, and 200 after them.
type receiver struct {
	mu      sync.Mutex
	codes   []int
	wait    string // Retry-After
	bodies  []string
	headers []http.Header
}

func (r *receiver) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies = append(r.bodies, string(body))
	r.headers = append(r.headers, req.Header)
	if len(r.codes) > 0 {
		if r.wait != "" {
			rw.Header().Set("Retry-After", r.wait)
		}
		rw.WriteHeader(r.codes[0])
		r.codes = r.codes[1:]
	}
}

// office is a sender with a receiver, and what came of its notifications.
type office struct {
	t       *testing.T
	sender  *notify.Sender
	clock   *clocktesting.FakeClock
	results chan string
	urlFile string

	mu  sync.Mutex
	log strings.Builder
}

func open(t *testing.T, handler http.Handler, change func(*notify.Config)) *office {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	o := &office{t: t, clock: clocktesting.NewFakeClock(now), results: make(chan string, 2000), urlFile: filepath.Join(t.TempDir(), "url")}
	o.write(o.urlFile, server.URL+secretPath+"\n")
	payload, err := notify.Format(notify.FormatSlack)
	if err != nil {
		t.Fatal(err)
	}
	cfg := notify.Config{
		URLFile: o.urlFile, Payload: payload, Least: notify.LevelInfo, Clock: o.clock,
		Count: func(_ types.NamespacedName, result string) { o.results <- result },
		Log: funcr.New(func(_, args string) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.log.WriteString(args + "\n")
		}, funcr.Options{}),
	}
	if change != nil {
		change(&cfg)
	}
	o.sender = notify.New(cfg)
	if err := o.sender.Problem(); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *office) write(file, text string) {
	o.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) start() {
	ctx, cancel := context.WithCancel(o.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = o.sender.Start(ctx)
	}()
	o.t.Cleanup(func() { cancel(); <-done })
}

// result is what came of the next notification; pauses are skipped, and returned.
func (o *office) result() (result string, paused time.Duration) {
	o.t.Helper()
	from := o.clock.Now()
	for {
		select {
		case result = <-o.results:
			return result, o.clock.Since(from)
		case <-o.t.Context().Done():
			o.t.Fatal("the test was ended")
		case <-time.After(time.Millisecond):
			if o.clock.HasWaiters() {
				o.clock.Step(500 * time.Millisecond)
			}
		}
	}
}

func rolledBack() notify.Transition {
	return notify.Transition{
		Namespace: "shop", Name: "checkout", Phase: "RolledBack", From: "Progressing", Reason: "Unhealthy", Level: notify.LevelWarning,
		Message: `error rate 4.2 > 1 <script> & "more"`, Revision: "v2", Attempt: 1, Stage: "2/6", Share: "0", At: now,
	}
}

func TestSlack(t *testing.T) {
	r := &receiver{}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := open(t, r, func(c *notify.Config) { c.TokenFile = token })
	o.start()
	o.sender.Announce(rolledBack())
	if result, _ := o.result(); result != "sent" {
		t.Fatal(result)
	}
	want := `{"text": ":warning: *shop/checkout* RolledBack at 0 % (revision v2, attempt 1): error rate 4.2 &gt; 1 &lt;script&gt; &amp; \"more\""}`
	if r.bodies[0] != want {
		t.Errorf("sent\n%s\nwant\n%s", r.bodies[0], want)
	}
	if h := r.headers[0]; h.Get("Authorization") != "Bearer t0ken" || h.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", h)
	}
}

func TestRetries(t *testing.T) {
	tests := map[string]struct {
		codes  []int
		wait   string
		result string
		tries  int
		paused time.Duration // at least
	}{
		"taken":               {nil, "", "sent", 1, 0},
		"busy twice":          {[]int{503, 429}, "", "sent", 3, 3 * time.Second},
		"asks for patience":   {[]int{429}, "20", "sent", 2, 20 * time.Second},
		"asks for too much":   {[]int{429}, "100000", "sent", 2, time.Minute},
		"asks for a time":     {[]int{429}, now.Add(20 * time.Second).Format(http.TimeFormat), "sent", 2, 20 * time.Second},
		"a time far away":     {[]int{429}, now.AddDate(1, 0, 0).Format(http.TimeFormat), "sent", 2, time.Minute},
		"a time that is over": {[]int{429}, now.Add(-time.Hour).Format(http.TimeFormat), "sent", 2, time.Second},
		"nonsense as a wait":  {[]int{429}, "soon", "sent", 2, time.Second},
		"never":               {[]int{500, 500, 500, 500, 500, 500, 500}, "", "failed", 6, 31 * time.Second},
		"refused":             {[]int{403}, "", "failed", 1, 0},
		"moved":               {[]int{302}, "", "failed", 1, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &receiver{codes: tc.codes, wait: tc.wait}
			o := open(t, r, nil)
			o.start()
			o.sender.Announce(rolledBack())
			result, paused := o.result()
			if result != tc.result || len(r.bodies) != tc.tries || paused < tc.paused || paused > tc.paused+tc.paused/10+time.Second {
				t.Errorf("%s after %d tries and %s, want %s after %d and %s", result, len(r.bodies), paused, tc.result, tc.tries, tc.paused)
			}
		})
	}
}

// TestAddressIsSecret: who knows the address can write to the channel.
func TestAddressIsSecret(t *testing.T) {
	o := open(t, &receiver{codes: []int{403}}, nil)
	o.start()
	o.sender.Announce(rolledBack())
	o.result()
	o.write(o.urlFile, "http://127.0.0.1:1"+secretPath) // nobody listens there
	o.sender.Announce(rolledBack())
	if result, _ := o.result(); result != "failed" {
		t.Error(result)
	}
	o.write(o.urlFile, "not an address s3cr3t")
	o.sender.Announce(rolledBack())
	if result, _ := o.result(); result != "failed" {
		t.Error(result)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := o.log.String(); strings.Count(text, "not sent") != 3 || strings.Count(text, "tried again") != 2 || strings.Contains(text, "s3cr3t") {
		t.Errorf("the log: %s", text)
	}
}

// TestFilesAreMended: a Secret that is wrong at the start keeps nothing from starting, and
// what is put right is used.
func TestFilesAreMended(t *testing.T) {
	r := &receiver{}
	o := open(t, r, nil)
	address, err := os.ReadFile(o.urlFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(o.urlFile); err != nil {
		t.Fatal(err)
	}
	if err := o.sender.Problem(); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Error(err)
	}
	o.sender.Announce(rolledBack())
	o.write(o.urlFile, string(address))
	o.start()
	if result, _ := o.result(); result != "sent" {
		t.Error(result)
	}
}

// TestOldNews: what waited for long says when it happened, and for too long is dropped.
func TestOldNews(t *testing.T) {
	for age, want := range map[time.Duration]string{
		20 * time.Second: "RolledBack at 0 % (revision v2, attempt 1): error",
		10 * time.Minute: "RolledBack at 0 % (revision v2, attempt 1) since 09:00:00 UTC: error",
		16 * time.Minute: "",
	} {
		r := &receiver{}
		o := open(t, r, nil)
		o.clock.Step(age)
		o.sender.Announce(rolledBack())
		o.start()
		result, _ := o.result()
		if want == "" && result != "dropped" || want != "" && (result != "sent" || !strings.Contains(r.bodies[0], want)) {
			t.Errorf("%s: %s, %v", age, result, r.bodies)
		}
	}
}

// TestWarningsOvertake: bad news does not wait behind good news that cannot be delivered.
func TestWarningsOvertake(t *testing.T) {
	blocked := make(chan struct{})
	r := &receiver{}
	o := open(t, http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		if strings.Contains(string(body), "information") {
			<-blocked
		}
		r.ServeHTTP(rw, req)
	}), nil)
	good := rolledBack()
	good.Level = notify.LevelInfo
	o.sender.Announce(good)
	o.sender.Announce(rolledBack())
	o.start()
	if result, _ := o.result(); result != "sent" {
		t.Error(result)
	}
	close(blocked)
	if result, _ := o.result(); result != "sent" {
		t.Error(result)
	}
}

// TestNobodyWaits: a receiver that does not answer keeps no rollout waiting.
func TestNobodyWaits(t *testing.T) {
	o := open(t, &receiver{}, nil) // not started: nothing is taken from the queue
	for range 505 {
		o.sender.Announce(rolledBack())
	}
	if n := len(o.results); n != 5 {
		t.Errorf("%d were dropped, want those beyond 500", n)
	}
}

func TestLevels(t *testing.T) {
	r := &receiver{}
	o := open(t, r, func(c *notify.Config) { c.Least = notify.LevelAction })
	o.start()
	for _, l := range []notify.Level{notify.LevelInfo, notify.LevelAction, notify.LevelWarning} {
		tr := rolledBack()
		tr.Level = l
		o.sender.Announce(tr)
	}
	for range 2 {
		if result, _ := o.result(); result != "sent" {
			t.Error(result)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.bodies) // warnings have a worker of their own
	if len(r.bodies) != 2 || !strings.Contains(r.bodies[0], ":raised_hand:") || !strings.Contains(r.bodies[1], ":warning:") {
		t.Errorf("%q", r.bodies)
	}
}

func TestTemplates(t *testing.T) {
	tests := map[string]struct{ template, problem string }{
		"own":            {`{"summary": {{ json .Text }}, "n": {{ .Attempt }}}`, ""},
		"not JSON":       {`{"text": "{{ .Message }}"}`, "does not write JSON"},
		"no such field":  {`{"text": {{ json .Nothing }}}`, "Nothing"},
		"no such func":   {`{{ upper .Name }}`, `function "upper" not defined`},
		"does not parse": {`{"text": {{ json .Message }`, "unexpected"},
		"empty":          {``, "does not write JSON"},
		"long":           {`["{{ range 100000 }}long{{ end }}"]`, "the template writes more than 65536 bytes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := notify.Template(tc.template)
			if tc.problem == "" && err != nil || tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)) {
				t.Errorf("%v, want %q", err, tc.problem)
			}
		})
	}
}

// TestATemplateIsEndedInTime: what it would write beyond the limit is not even held.
func TestATemplateIsEndedInTime(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := notify.Template(`["{{ range 60000000 }}x{{ end }}"]`)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 65536 bytes") {
		t.Errorf("%v, want it to name the limit", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes were allocated for it", used)
	}
}

func TestJSON(t *testing.T) {
	payload, err := notify.Format(notify.FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{}
	o := open(t, r, func(c *notify.Config) { c.Payload = payload })
	o.start()
	o.sender.Announce(rolledBack())
	o.result()
	var got map[string]any
	if err := json.Unmarshal([]byte(r.bodies[0]), &got); err != nil {
		t.Fatal(err)
	}
	if got["message"] != rolledBack().Message || got["attempt"] != 1.0 || got["at"] != "2026-03-02T09:00:00Z" || len(got) != 12 {
		t.Errorf("%v", got)
	}
	if _, err := notify.Format("teams"); err == nil || !strings.Contains(err.Error(), "slack or json") {
		t.Error(err)
	}
	if _, err := notify.ParseLevel("Loud"); err == nil || !strings.Contains(err.Error(), "Info, Action or Warning") {
		t.Error(err)
	}
}
