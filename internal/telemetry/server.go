package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

const (
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
	memory      *memory
	getOnly     atomic.Bool  // the server refuses POST
	ahead       atomic.Int64 // by how many nanoseconds its clock is ahead
	users       int          // guarded by Collector.mu

	mu        sync.Mutex
	texts     []string // what client was made from
	client    *client
	transport *http.Transport // the client's own, if it has one
}

// newServer prepares a server whose address can be parsed, and holds its Secrets.
func newServer(address string, c *credentials, cfg Config) *server {
	s := &server{
		address: address, credentials: c, shared: cfg.Transport,
		batches: newLane(cfg.Concurrency, cfg.Clock), checks: newLane(cfg.Concurrency, cfg.Clock), clock: cfg.Clock, timeout: cfg.Timeout, memory: cfg.answers,
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
func (s *server) connect(ctx context.Context) (*client, *health.Problem) {
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
	base, err := url.Parse(s.address)
	if err != nil {
		return nil, badAddress("cannot be used")
	}
	s.client, s.texts = &client{base: base, http: &http.Client{
		Transport: &guard{server: s, next: &withHeaders{header: header, next: next}},
		// A redirect would carry queries and credentials to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, texts
	return s.client, nil
}

// client sends requests to an address. That of the Prometheus project reads every reply
// into memory as a whole.
type client struct {
	base *url.URL
	http *http.Client
}

// url returns where an endpoint of the API is.
func (c *client) url(endpoint string) url.URL {
	u := *c.base
	u.Path = path.Join(u.Path, endpoint)
	return u
}

// badAddress says what is wrong with an address.
func badAddress(what string) *health.Problem {
	return &health.Problem{Reason: v1alpha1.ReasonNoMetricsAddress, Message: "the address of the metrics server " + what + ": give one such as http://prometheus.monitoring:9090"}
}

// instant asks for the value of a query at a time, for somebody in a namespace.
func (s *server) instant(ctx context.Context, namespace, query string, at time.Time) (n *number, p *health.Problem) {
	err := s.ask(ctx, s.checks, "/api/v1/query", url.Values{"query": {query}, "time": {unixSeconds(at)}}, func(ctx context.Context, body io.Reader) error {
		room, err := s.memory.room(ctx, namespace, answerCost)
		if err != nil {
			return err
		}
		defer room.leave()
		n, err = instantNumber(body)
		return err
	})
	if err != nil {
		return nil, s.explain(err)
	}
	return n, nil
}

// overRange asks for the values of a query at every tick of a table, and calls add for
// every series.
func (s *server) overRange(ctx context.Context, query string, t *table, add func(*series) error) error {
	return s.ask(ctx, s.batches, "/api/v1/query_range", url.Values{
		"query": {query},
		"start": {unixSeconds(t.from)},
		"end":   {unixSeconds(t.from.Add(time.Duration(t.ticks-1) * t.interval))},
		"step":  {strconv.FormatFloat(t.interval.Seconds(), 'f', -1, 64)},
	}, func(_ context.Context, body io.Reader) error { return readMatrix(body, t.limits(), add) })
}

// unixSeconds writes a time to the millisecond, which is what Prometheus knows.
func unixSeconds(t time.Time) string {
	ms := t.UnixMilli()
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}

func (s *server) ask(ctx context.Context, l *lane, path string, args url.Values, read func(context.Context, io.Reader) error) error {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, laneKey{}, l), s.timeout)
	defer cancel()
	leave, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if l.resting() {
		return errResting
	}
	client, p := s.connect(ctx)
	if p != nil {
		return &unusableError{p}
	}
	args.Set("timeout", strconv.FormatFloat(s.timeout.Seconds(), 'f', -1, 64))
	response, err := s.send(ctx, client, path, args)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if err := read(ctx, response.Body); err != nil {
		return err
	}
	if response.StatusCode/100 != 2 {
		return &statusError{code: response.StatusCode} // which says that it is no success
	}
	return nil
}

// send posts a query: the list of a thousand backends is too long for a URL. A server
// that refuses POST is asked by GET, as the API's own client does, and from then on
// until it refuses that.
func (s *server) send(ctx context.Context, client *client, path string, args url.Values) (*http.Response, error) {
	target := client.url(path)
	if !s.getOnly.Load() {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader(args.Encode()))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := client.http.Do(request)
		var status *statusError
		if !errors.As(err, &status) || (status.code != http.StatusMethodNotAllowed && status.code != http.StatusNotImplemented) {
			return response, err
		}
		s.getOnly.Store(true)
	}
	target.RawQuery = args.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := client.http.Do(request)
	if _, refused := errors.AsType[*statusError](err); refused {
		s.getOnly.Store(false)
	}
	return response, err
}

var (
	errResting = errors.New("the server asked for a rest")
	errCrowded = errors.New("too many queries are under way")
)

// unusableError says that nothing was sent, and why.
type unusableError struct{ problem *health.Problem }

func (e *unusableError) Error() string { return e.problem.Message }

// culprit says whether an error can be the fault of one of the rollouts that a request
// was about, so that the others are better asked without it.
func culprit(err error) bool {
	_, refused := errors.AsType[*apiError](err)
	_, large := errors.AsType[*sizeError](err)
	return refused || large || errors.Is(err, errPartial) || errors.Is(err, errNoRoom) || errors.Is(err, errNoMatrix)
}

// statusError is a reply with an HTTP status that carries no result. Its body is
// not kept: it could echo anything.
type statusError struct{ code int }

func (e *statusError) Error() string { return "HTTP " + strconv.Itoa(e.code) }

// guard is the round tripper of one server: it notes when the server asks for a
// rest, and lets only replies through that carry a result.
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
