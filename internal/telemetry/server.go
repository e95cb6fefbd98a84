package telemetry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
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

// server is a metrics server. It is asked by a bounded number of requests at a
// time, and not at all while it has asked for a rest.
type server struct {
	address string // as the collector knows it
	host    string // for messages
	client  api.Client
	slots   chan struct{}
	clock   clock.PassiveClock
	timeout time.Duration
	users   int // guarded by Collector.mu

	mu        sync.Mutex
	notBefore time.Time
}

// newServer parses the address. The problem says what is wrong with it, without
// repeating it: it could hold a password.
func newServer(address string, cfg Config) (*server, *health.Problem) {
	u, err := url.Parse(address)
	bad := ""
	switch {
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		bad = "is no http or https URL"
	case u.User != nil:
		bad = "must not hold a user name or password"
	case u.RawQuery != "" || u.Fragment != "":
		bad = "must not have a query or fragment"
	}
	if bad != "" {
		return nil, &health.Problem{Reason: v1alpha1.ReasonNoMetricsAddress, Message: "the address of the metrics server " + bad + ": give one such as http://prometheus.monitoring:9090"}
	}
	s := &server{host: u.Host, slots: make(chan struct{}, cfg.Concurrency), clock: cfg.Clock, timeout: cfg.Timeout}
	s.client, err = api.NewClient(api.Config{Address: address, Client: &http.Client{
		Transport: &guard{server: s, next: cfg.Transport},
		// A redirect could carry queries, and later credentials, to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, &health.Problem{Reason: v1alpha1.ReasonNoMetricsAddress, Message: "the address of the metrics server cannot be used"}
	}
	return s, nil
}

// instant asks for the value of a query at a time.
func (s *server) instant(ctx context.Context, query string, at time.Time) (*reply, *health.Problem) {
	return s.ask(ctx, "/api/v1/query", url.Values{"query": {query}, "time": {unixSeconds(at)}})
}

// overRange asks for the values of a query at every step from one time to another.
func (s *server) overRange(ctx context.Context, query string, from, to time.Time, step time.Duration) ([]series, *health.Problem) {
	r, p := s.ask(ctx, "/api/v1/query_range", url.Values{
		"query": {query},
		"start": {unixSeconds(from)},
		"end":   {unixSeconds(to)},
		"step":  {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
	if p != nil {
		return nil, p
	}
	m, err := r.matrix()
	if err != nil {
		return nil, s.explain(err)
	}
	return m, nil
}

// unixSeconds writes a time to the millisecond, which is what Prometheus knows.
func unixSeconds(t time.Time) string {
	ms := t.UnixMilli()
	return fmt.Sprintf("%d.%03d", ms/1000, ms%1000)
}

func (s *server) ask(ctx context.Context, path string, args url.Values) (*reply, *health.Problem) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, s.explain(ctx.Err())
	}
	if s.resting() {
		return nil, s.explain(errResting)
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	args.Set("timeout", strconv.FormatFloat(s.timeout.Seconds(), 'f', -1, 64))
	// The list of a thousand backends is too long for a URL.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.client.URL(path, nil).String(), strings.NewReader(args.Encode()))
	if err != nil {
		return nil, s.explain(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, body, err := s.client.Do(ctx, request)
	if err != nil {
		return nil, s.explain(err)
	}
	r, err := decodeReply(body)
	if err != nil {
		return nil, s.explain(err)
	}
	return r, nil
}

func (s *server) resting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock.Now().Before(s.notBefore)
}

// rest notes that the server wants no request for a while.
func (s *server) rest(d time.Duration) {
	until := s.clock.Now().Add(min(max(d, 0), maxRetryAfter))
	s.mu.Lock()
	defer s.mu.Unlock()
	if until.After(s.notBefore) {
		s.notBefore = until
	}
}

var (
	errResting  = errors.New("the server asked for a rest")
	errTooLarge = errors.New("the reply is too large")
)

// statusError is a reply with an HTTP status that carries no result. Its body is
// not kept: it could echo anything.
type statusError struct{ code int }

func (e *statusError) Error() string { return "HTTP " + strconv.Itoa(e.code) }

// explain turns an error into words for a status message. Only what is known here
// goes into them: the text of an error can hold URLs, queries and bodies.
func (s *server) explain(err error) *health.Problem {
	reason, what := v1alpha1.ReasonProviderError, ""
	var (
		status  *statusError
		refused *apiError
	)
	switch {
	case errors.As(err, &status) && (status.code == http.StatusUnauthorized || status.code == http.StatusForbidden):
		reason, what = v1alpha1.ReasonProviderAuth, fmt.Sprintf("refused the credentials (HTTP %d)", status.code)
	case errors.As(err, &status):
		what = fmt.Sprintf("answered HTTP %d", status.code)
	case errors.As(err, &refused):
		what = "refused the query (" + refused.class + ")"
	case errors.Is(err, errResting):
		what = "asked for a rest, and is not asked until that is over"
	case errors.Is(err, errTooLarge):
		what = fmt.Sprintf("gave a reply of more than %d MiB", maxBody>>20)
	case errors.Is(err, errNotPrometheus):
		what = "gave a reply that is not one of the Prometheus API"
	case errors.Is(err, errPartial):
		what = "gave a partial response, with warnings"
	case errors.Is(err, errNoMatrix):
		reason, what = v1alpha1.ReasonUnsupportedResult, "gave something that is not a list of series of numbers"
	default:
		what = s.unreachable(err)
	}
	return &health.Problem{Reason: reason, Message: fmt.Sprintf("the metrics server %s %s", s.host, what)}
}

// unreachable says why there was no reply.
func (s *server) unreachable(err error) string {
	var (
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		network net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "was not waited for"
	case errors.As(err, &dns):
		return "could not be reached: its name cannot be resolved"
	case errors.As(err, &cert):
		return "could not be reached: its certificate is not trusted"
	case errors.As(err, &record):
		return "could not be reached: it does not speak TLS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "could not be reached: connection refused"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("did not answer within %s", s.timeout)
	}
	return "could not be reached"
}

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
	switch code := response.StatusCode; {
	case code/100 == 2, code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		// The latter two carry the class of the error.
		response.Body = &limitedBody{ReadCloser: response.Body, left: maxBody + 1}
		return response, nil
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		if d, ok := retryAfter(response.Header.Get("Retry-After"), g.server.clock.Now()); ok {
			g.server.rest(d)
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
