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
	concurrency int
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
		batches: newLane(cfg.Concurrency, cfg.Clock), checks: newLane(cfg.Concurrency, cfg.Clock), concurrency: cfg.Concurrency,
		clock: cfg.Clock, timeout: cfg.Timeout, memory: cfg.answers,
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
		s.transport = newTransport(2*s.concurrency, config)
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

// instant asks for the value of a query at a time.
func (s *server) instant(ctx context.Context, by caller, query string, at time.Time) (n *number, err error) {
	err = s.check(ctx, by, "/api/v1/query", url.Values{"query": {query}, "time": {unixSeconds(at)}}, answerCost, func(body io.Reader) error {
		n, err = instantNumber(body)
		return err
	})
	return n, err
}

// check asks what is asked for one rollout alone. Reading the answer takes so much memory.
// A rest that the server asks for is for the rollout's namespace.
func (s *server) check(ctx context.Context, by caller, path string, args url.Values, cost int64, read func(io.Reader) error) error {
	err := s.ask(ctx, s.checks, by, path, args, func(ctx context.Context, body io.Reader) error {
		room, err := s.memory.room(ctx, by.tenant, cost)
		if err != nil {
			return err
		}
		defer room.leave()
		return read(body)
	})
	if err == nil {
		s.checks.answered()
	} else if d := restOf(err); d > 0 {
		s.checks.rest(by.tenant, d)
	}
	return err
}

// probe finds out whether the server answers anything: where nobody is answered, it can be
// down, or be asked for too much at once.
func (s *server) probe(ctx context.Context) {
	args := url.Values{"query": {"vector(1)"}, "time": {unixSeconds(s.clock.Now())}}
	err := s.ask(ctx, s.batches, caller{tenant: everybody}, "/api/v1/query", args, func(_ context.Context, body io.Reader) error {
		_, err := instantNumber(body)
		return err
	})
	if err == nil {
		s.batches.answered()
	}
}

// overRange asks for the values of a query at every tick of a table, and calls add for
// every series.
func (s *server) overRange(ctx context.Context, by caller, query string, t *table, add func(*series) error) error {
	last := t.from.Add(time.Duration(t.ticks-1) * t.interval)
	return s.ask(ctx, s.batches, by, "/api/v1/query_range", rangeOf(query, t.from, last, t.interval), func(_ context.Context, body io.Reader) error {
		return readMatrix(body, t.limits(), add)
	})
}

func rangeOf(query string, from, to time.Time, step time.Duration) url.Values {
	return url.Values{
		"query": {query},
		"start": {unixSeconds(from)},
		"end":   {unixSeconds(to)},
		"step":  {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}
}

// unixSeconds writes a time to the millisecond, which is what Prometheus knows.
func unixSeconds(t time.Time) string {
	ms := t.UnixMilli()
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}

// ask sends a request when it is its turn, and reads the answer. The wait for it begins
// then, and not while others are waited for.
func (s *server) ask(ctx context.Context, l *lane, by caller, path string, args url.Values, read func(context.Context, io.Reader) error) error {
	leave, err := s.turn(ctx, l, by)
	if err != nil {
		return err
	}
	defer leave()
	if l.resting(by.tenant) {
		return errResting
	}
	sent := s.clock.Now()
	if err := s.exchange(ctx, path, args, read); err != nil {
		return &sentError{err, s.clock.Now().Sub(sent)}
	}
	return nil
}

// exchange sends a request, and reads the answer.
func (s *server) exchange(ctx context.Context, path string, args url.Values, read func(context.Context, io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
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

// turn waits for the turn of a request: for as long as for an answer, or, for what comes
// last, until it comes.
func (s *server) turn(ctx context.Context, l *lane, by caller) (leave func(), err error) {
	if !by.last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.timeout)
		defer cancel()
	}
	return l.enter(ctx, by)
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
	return refused || large || errors.Is(err, errPartial) || errors.Is(err, errNoMatrix)
}

// statusError is a reply with an HTTP status that carries no result. Its body is
// not kept: it could echo anything.
type statusError struct {
	code int
	rest time.Duration // that the server asks for
}

func (e *statusError) Error() string { return "HTTP " + strconv.Itoa(e.code) }

// sentError is why a request that had its turn was not answered, and after what time.
type sentError struct {
	error
	after time.Duration
}

func (e *sentError) Unwrap() error { return e.error }

// afterOf is how long an error was waited for since the request was sent.
func afterOf(err error) time.Duration {
	if e, ok := errors.AsType[*sentError](err); ok {
		return e.after
	}
	return 0
}

// slow reports whether an error was waited for so long that others had to wait as well.
func slow(err error) bool {
	const long = time.Second
	return errors.Is(err, context.DeadlineExceeded) || afterOf(err) >= long
}

// restOf is the rest that a server asks for with an error.
func restOf(err error) time.Duration {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.rest
	}
	return 0
}

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
	refused := &statusError{code: response.StatusCode}
	switch code := response.StatusCode; {
	case code/100 == 2, code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		// The latter two carry the class of the error.
		return response, nil
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		if d, ok := retryAfter(response.Header.Get("Retry-After"), g.server.clock.Now()); ok {
			refused.rest = min(max(d, 0), maxRetryAfter)
		}
	}
	// A short body is read to its end, so that the connection can be used again.
	_, _ = io.CopyN(io.Discard, response.Body, 64<<10)
	_ = response.Body.Close()
	return nil, refused
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
