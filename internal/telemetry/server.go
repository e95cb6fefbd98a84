package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/api"
	"k8s.io/utils/clock"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

const (
	// maxBody is the largest reply that is read, in bytes after decompression.
	maxBody = 32 << 20
	// maxRetryAfter caps how long a server can ask to be left alone.
	maxRetryAfter = 5 * time.Minute
)

// server is a metrics server, asked with one set of credentials. It is asked by a
// bounded number of requests at a time, and not at all while it has asked for a rest.
type server struct {
	id          string // as the collector knows it
	address     string
	host        string // for messages
	credentials *credentials
	shared      http.RoundTripper // where no TLS settings are needed
	batches     *lane
	checks      *lane
	clock       clock.PassiveClock
	timeout     time.Duration
	getOnly     atomic.Bool  // the server refuses POST
	ahead       atomic.Int64 // by how many nanoseconds its clock is ahead
	users       int          // guarded by Collector.mu

	mu        sync.Mutex
	texts     []string // what client was made from
	client    api.Client
	transport *http.Transport // the client's own, if it has one
}

// newServer prepares a server whose address can be parsed, and holds its Secrets.
func newServer(address string, c *credentials, cfg Config) *server {
	s := &server{
		address: address, credentials: c, shared: cfg.Transport,
		batches: newLane(cfg.Concurrency, cfg.Clock), checks: newLane(cfg.Concurrency, cfg.Clock), clock: cfg.Clock, timeout: cfg.Timeout,
	}
	if u, problem := parseAddress(address); problem == "" {
		s.host = u.Host
	}
	c.hold()
	return s
}

// close lets the Secrets go, and connections that nobody uses.
func (s *server) close() {
	s.credentials.release()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disconnect()
}

// disconnect drops the client. The caller holds the lock.
func (s *server) disconnect() {
	if s.transport != nil {
		s.transport.CloseIdleConnections()
	}
	s.client, s.transport, s.texts = nil, nil, nil
}

// connect returns a client with the present credentials: another one as soon as a
// Secret has changed.
func (s *server) connect(ctx context.Context) (api.Client, *health.Problem) {
	texts, p := s.credentials.read(ctx)
	if p != nil {
		return nil, p
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil && slices.Equal(texts, s.texts) {
		return s.client, nil
	}
	s.disconnect()
	header, p := s.credentials.headers(texts)
	if p != nil {
		return nil, p
	}
	next := s.shared
	if s.credentials.usesTLS() {
		config, p := s.credentials.tlsConfig(texts)
		if p != nil {
			return nil, p
		}
		s.transport = newTransport(2*cap(s.batches.slots), config)
		next = s.transport
	}
	client, err := api.NewClient(api.Config{Address: s.address, Client: &http.Client{
		Transport: &guard{server: s, next: &withHeaders{header: header, next: next}},
		// A redirect would carry queries and credentials to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, badAddress("cannot be used")
	}
	s.client, s.texts = client, texts
	return client, nil
}

// badAddress says what is wrong with an address.
func badAddress(what string) *health.Problem {
	return &health.Problem{Reason: v1alpha1.ReasonNoMetricsAddress, Message: "the address of the metrics server " + what + ": give one such as http://prometheus.monitoring:9090"}
}

// instant asks for the value of a query at a time.
func (s *server) instant(ctx context.Context, query string, at time.Time) (*reply, *health.Problem) {
	r, err := s.ask(ctx, s.checks, "/api/v1/query", url.Values{"query": {query}, "time": {unixSeconds(at)}})
	if err != nil {
		return nil, s.explain(err)
	}
	return r, nil
}

// overRange asks for the values of a query at every step from one time to another.
func (s *server) overRange(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]series, error) {
	r, err := s.ask(ctx, s.batches, "/api/v1/query_range", url.Values{
		"query": {query},
		"start": {unixSeconds(from)},
		"end":   {unixSeconds(to)},
		"step":  {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
	if err != nil {
		return nil, err
	}
	return r.matrix()
}

// unixSeconds writes a time to the millisecond, which is what Prometheus knows.
func unixSeconds(t time.Time) string {
	ms := t.UnixMilli()
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}

func (s *server) ask(ctx context.Context, l *lane, path string, args url.Values) (*reply, error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, laneKey{}, l), s.timeout)
	defer cancel()
	leave, err := l.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if l.resting() {
		return nil, errResting
	}
	client, p := s.connect(ctx)
	if p != nil {
		return nil, &unusableError{p}
	}
	args.Set("timeout", strconv.FormatFloat(s.timeout.Seconds(), 'f', -1, 64))
	body, err := s.send(ctx, client, path, args)
	if err != nil {
		return nil, err
	}
	return decodeReply(body)
}

// send posts a query: the list of a thousand backends is too long for a URL. A server
// that refuses POST is asked by GET, as the API's own client does, and from then on
// until it refuses that.
func (s *server) send(ctx context.Context, client api.Client, path string, args url.Values) ([]byte, error) {
	target := client.URL(path, nil)
	if !s.getOnly.Load() {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(args.Encode()))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		_, body, err := client.Do(ctx, request)
		var status *statusError
		if !errors.As(err, &status) || (status.code != http.StatusMethodNotAllowed && status.code != http.StatusNotImplemented) {
			return body, err
		}
		s.getOnly.Store(true)
	}
	target.RawQuery = args.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	_, body, err := client.Do(ctx, request)
	if _, refused := errors.AsType[*statusError](err); refused {
		s.getOnly.Store(false)
	}
	return body, err
}

var (
	errResting  = errors.New("the server asked for a rest")
	errTooLarge = errors.New("the reply is too large")
	errCrowded  = errors.New("too many queries are under way")
)

// unusableError says that nothing was sent, and why.
type unusableError struct{ problem *health.Problem }

func (e *unusableError) Error() string { return e.problem.Message }

// culprit says whether an error can be the fault of one of the rollouts that a request
// was about, so that the others are better asked without it.
func culprit(err error) bool {
	_, refused := errors.AsType[*apiError](err)
	return refused || errors.Is(err, errPartial) || errors.Is(err, errTooLarge) || errors.Is(err, errNoMatrix)
}

// statusError is a reply with an HTTP status that carries no result. Its body is
// not kept: it could echo anything.
type statusError struct{ code int }

func (e *statusError) Error() string { return "HTTP " + strconv.Itoa(e.code) }

// guard is the round tripper of one server: it notes when the server asks for a
// rest, lets only replies through that carry a result, and bounds their size.
type guard struct {
	server *server
	next   http.RoundTripper
}

// RoundTrip sends the request. It fails on every status without a result.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	g.server.noteDate(response.Header)
	switch code := response.StatusCode; {
	case code/100 == 2, code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		// The latter two carry the class of the error.
		response.Body = &limitedBody{ReadCloser: response.Body, left: maxBody + 1}
		return response, nil
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		if d, ok := retryAfter(response.Header.Get("Retry-After"), g.server.clock.Now()); ok {
			if l, ok := request.Context().Value(laneKey{}).(*lane); ok {
				l.rest(d)
			}
		}
	}
	// A short body is read to its end, so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
	_ = response.Body.Close()
	return nil, &statusError{code: response.StatusCode}
}

// retryAfter reads the header's seconds or HTTP date.
func retryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if n, err := strconv.ParseUint(value, 10, 63); err == nil {
		return time.Duration(min(n, uint64(maxRetryAfter/time.Second))) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return at.Sub(now), true
	}
	return 0, false
}

// limitedBody fails when more than the limit is read.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
