package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/dashboard"
)

// patience bounds every wait: it says when a test has failed, not how fast it has to be.
const patience = 2 * time.Minute

// site is a server that a test visits.
type site struct {
	t      *testing.T
	server *dashboard.Server
	host   string // with the port
	token  string
	cookie string
	end    func() error
}

// open starts a server, and lets the test in.
func open(t *testing.T, source dashboard.Source, given dashboard.Orders) *site {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	server, err := dashboard.Listen(ctx, dashboard.Options{Source: source, Orders: given, Scope: "all namespaces"})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx) }()
	s := &site{t: t, server: server, end: sync.OnceValue(func() error { cancel(); return <-served })}
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	at, err := url.Parse(server.Address())
	if err != nil {
		t.Fatal(err)
	}
	s.host, s.token = at.Host, strings.TrimPrefix(at.Fragment, "token=")
	resp := s.do(http.MethodPost, "/api/session", `{"token":"`+s.token+`"}`, map[string]string{"Content-Type": "application/json"})
	if resp.status != http.StatusNoContent || len(resp.header.Values("Set-Cookie")) != 1 {
		t.Fatalf("the token lets nobody in: %d %s", resp.status, resp.body)
	}
	s.cookie, _, _ = strings.Cut(resp.header.Get("Set-Cookie"), ";")
	return s
}

type response struct {
	status int
	header http.Header
	body   string
}

// do sends a request with headers; Host stands for the name that is asked for, and an
// empty value for none.
func (s *site) do(method, path, body string, headers map[string]string) response {
	s.t.Helper()
	resp, err := http.DefaultClient.Do(s.request(method, path, body, headers)) //nolint:bodyclose // read and closed below
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return response{resp.StatusCode, resp.Header, "a stream without an end"}
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response{resp.StatusCode, resp.Header, string(text)}
}

func (s *site) request(method, path, body string, headers map[string]string) *http.Request {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.host+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if s.cookie != "" {
		req.Header.Set("Cookie", s.cookie)
	}
	for name, value := range headers {
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	return req
}

// stream is what a page hears.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
	close func() error
}

func (s *site) listen(path string) *stream {
	s.t.Helper()
	resp, err := http.DefaultClient.Do(s.request(http.MethodGet, path, "", nil)) //nolint:bodyclose // closed by the test, or at its end
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%s: %d %v", path, resp.StatusCode, resp.Header)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	return &stream{s.t, lines, resp.Body.Close}
}

// next reads on to the next message with a name that a condition holds for.
func next[T any](s *stream, name string, holds func(T) bool) T {
	s.t.Helper()
	dead := time.AfterFunc(patience, func() { _ = s.close() })
	defer dead.Stop()
	event := ""
	for s.lines.Scan() {
		if is, ok := strings.CutPrefix(s.lines.Text(), "event: "); ok {
			event = is
		}
		data, ok := strings.CutPrefix(s.lines.Text(), "data: ")
		if !ok || event != name {
			continue
		}
		var is T
		if err := json.Unmarshal([]byte(data), &is); err != nil {
			s.t.Fatalf("%s: %v\n%s", name, err, data)
		}
		if holds(is) {
			return is
		}
	}
	s.t.Fatalf("the stream has ended without %s: %v", name, s.lines.Err())
	panic("unreachable")
}

func whatever[T any](T) bool { return true }

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// TestPort: a port that is taken, or none, is said so.
func TestPort(t *testing.T) {
	s := open(t, newCluster(), nil)
	if host, _, err := net.SplitHostPort(s.host); err != nil || host != "127.0.0.1" {
		t.Errorf("it is served at %s", s.host)
	}
	at, err := net.ResolveTCPAddr("tcp", s.host)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		port int
		says string
	}{{at.Port, "give another one"}, {-1, "from 1 to 65535"}, {65536, "from 1 to 65535"}} {
		if _, err := dashboard.Listen(t.Context(), dashboard.Options{Source: newCluster(), Port: test.port}); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("port %d: %v", test.port, err)
		}
	}
}

// TestEnd: an open page does not keep the server from ending.
func TestEnd(t *testing.T) {
	s := open(t, newCluster(checkout(t)), nil)
	next(s.listen("/api/stream"), "rows", whatever[dashboard.Rows])
	if err := s.end(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", s.host); err == nil { //nolint:noctx // nobody is there
		t.Error("the port is still open")
	}
}
