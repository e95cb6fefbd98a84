package played

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// traffic is what a backend's metrics say.
type traffic struct {
	perSecond float64 // requests per second
	failed    float64 // part of them that fail
	slow      float64 // part of them that take longer than a second
	absent    bool    // there is no series
	nan       bool    // every number is NaN
}

// fine is the traffic of every backend about which nothing else is said.
var fine = traffic{perSecond: 50}

// outage is how the server fails. The zero value does not.
type outage struct {
	refuse bool        // nobody listens
	stall  bool        // no answer at all
	code   int         // an HTTP status
	header http.Header // of that answer
	body   string      // of that answer
}

// question is one request to the server.
type question struct {
	at       time.Time
	path     string
	query    string
	end      string // of the range, or the time of an instant query
	answered bool   // with a result
	done     time.Time
}

// playedPrometheus answers the Prometheus HTTP API with what a test wants.
type playedPrometheus struct {
	t       *testing.T
	address string

	mu        sync.Mutex
	server    *http.Server
	backends  map[string]traffic
	answers   map[string]func(at string) string
	outage    outage
	restored  chan struct{} // closed when an outage ends
	questions []question
}

func newPlayedPrometheus(t *testing.T) *playedPrometheus {
	t.Helper()
	p := &playedPrometheus{
		t: t, backends: map[string]traffic{}, answers: map[string]func(string) string{},
		restored: make(chan struct{}),
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listening as Prometheus: %v", err)
	}
	p.address = listener.Addr().String()
	p.serve(listener)
	t.Cleanup(func() {
		p.mu.Lock()
		server := p.server
		p.mu.Unlock()
		if server != nil {
			_ = server.Close()
		}
	})
	return p
}

func (p *playedPrometheus) url() string { return "http://" + p.address }

func (p *playedPrometheus) serve(listener net.Listener) {
	p.server = &http.Server{Handler: http.HandlerFunc(p.handle), ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(listener) }(p.server)
}

// backendName is how Traefik's metrics name a backend.
func backendName(namespace, service string) string {
	return namespace + "-" + service + "-http-80@kubernetesgateway"
}

// set says what a backend's metrics are from now on.
func (p *playedPrometheus) set(namespace, service string, tr traffic) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.backends[backendName(namespace, service)] = tr
}

// answer says what every instant query that contains the text is answered. Where
// several texts fit, the longest counts.
func (p *playedPrometheus) answer(text string, result func(at string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[text] = result
}

// fail begins an outage, or ends it with the zero value. It is in force for every
// question from now on.
func (p *playedPrometheus) fail(o outage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.outage
	p.outage = o
	if was.stall {
		close(p.restored)
		p.restored = make(chan struct{})
	}
	switch {
	case o.refuse && !was.refuse:
		_ = p.server.Close()
		p.server = nil
	case was.refuse && !o.refuse:
		var listener net.Listener
		var err error
		for range 100 {
			if listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", p.address); err == nil {
				p.serve(listener)
				return
			}
			time.Sleep(pollEvery)
		}
		p.t.Errorf("listening as Prometheus again: %v", err)
	}
}

// asked returns the questions since the given number, and how many there are now.
func (p *playedPrometheus) asked(since int) ([]question, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.questions[since:]), len(p.questions)
}

// longestOverlap is the longest time for which two requests for one query were
// outstanding at once.
func (p *playedPrometheus) longestOverlap() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	var longest time.Duration
	last := map[string]time.Time{} // when the earlier ones of a query were all done
	for _, q := range p.questions {
		done := q.done
		if done.IsZero() {
			done = time.Now()
		}
		if before := last[q.query]; before.Before(done) {
			longest = max(longest, before.Sub(q.at))
			last[q.query] = done
			continue
		}
		longest = max(longest, done.Sub(q.at))
	}
	return longest
}

func (p *playedPrometheus) handle(rw http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	q := question{at: time.Now(), path: r.URL.Path, query: r.Form.Get("query"), end: r.Form.Get("end")}
	if q.end == "" {
		q.end = r.Form.Get("time")
	}
	p.mu.Lock()
	o, restored := p.outage, p.restored
	q.answered = o.code == 0 && !o.stall
	number := len(p.questions)
	p.questions = append(p.questions, q)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.questions[number].done = time.Now()
		p.mu.Unlock()
	}()
	switch {
	case o.stall:
		select {
		case <-r.Context().Done():
		case <-restored:
		}
		panic(http.ErrAbortHandler)
	case o.code != 0:
		maps.Copy(rw.Header(), o.header)
		rw.WriteHeader(o.code)
		_, _ = rw.Write([]byte(o.body))
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/api/v1/query_range":
		_, _ = rw.Write(p.overRange(q.query, r.Form.Get("start"), r.Form.Get("end"), r.Form.Get("step")))
	case "/api/v1/query":
		_, _ = rw.Write([]byte(p.instant(q.query, q.end)))
	default:
		rw.WriteHeader(http.StatusNotFound)
	}
}

func (p *playedPrometheus) instant(query, at string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest := ""
	for text := range p.answers {
		if strings.Contains(query, text) && len(text) > len(longest) {
			longest = text
		}
	}
	if longest == "" {
		return vector()(at)
	}
	return p.answers[longest](at)
}

// vector answers with one element per value, each with a label of its own.
func vector(values ...string) func(at string) string {
	return func(at string) string {
		elements := make([]string, len(values))
		for i, v := range values {
			elements[i] = fmt.Sprintf(`{"metric":{"pod":"p%d"},"value":[%s,%q]}`, i, at, v)
		}
		return result("vector", "["+strings.Join(elements, ",")+"]")
	}
}

// raw answers with a result of the given type; AT stands for the time.
func raw(kind, text string) func(at string) string {
	return func(at string) string { return result(kind, strings.ReplaceAll(text, "AT", at)) }
}

func result(kind, text string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, text)
}

var (
	queryMatcher = regexp.MustCompile(`=~("(?:[^"\\]|\\.)*")`)
	queryWindow  = regexp.MustCompile(`\[(\d+)ms\]`)
)

type seriesJSON struct {
	Metric map[string]string `json:"metric"`
	Values [][2]any          `json:"values"`
}

// bounds are the upper bounds of the histogram's buckets, and how many of the fast
// requests are in each.
var bounds = []struct {
	le   string
	fast float64
}{{"0.1", 0.9}, {"0.3", 1}, {"0.5", 1}, {"1", 1}, {"+Inf", 1}}

// overRange answers a range query for the backends that it names.
func (p *playedPrometheus) overRange(query, start, end, step string) []byte {
	from, _ := strconv.ParseFloat(start, 64)
	to, _ := strconv.ParseFloat(end, 64)
	every, _ := strconv.ParseFloat(step, 64)
	var ticks []float64
	for i := 0; every > 0; i++ {
		tick := math.Round((from+float64(i)*every)*1000) / 1000
		if tick > to+1e-6 {
			break
		}
		ticks = append(ticks, tick)
	}
	window := 1.0
	if m := queryWindow.FindStringSubmatch(query); m != nil {
		ms, _ := strconv.ParseFloat(m[1], 64)
		window = ms / 1000
	}
	all := []seriesJSON{}
	for _, name := range named(query) {
		p.mu.Lock()
		tr, ok := p.backends[name]
		p.mu.Unlock()
		if !ok {
			tr = fine
		}
		if !tr.absent {
			all = append(all, tr.series(name, strings.Contains(query, "_bucket"), window, ticks)...)
		}
	}
	body, err := json.Marshal(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": all}})
	if err != nil {
		p.t.Errorf("answering as Prometheus: %v", err)
	}
	return body
}

// named lists the backends that a query asks for: those of HTTPRoutes.
func named(query string) []string {
	m := queryMatcher.FindStringSubmatch(query)
	if m == nil {
		return nil
	}
	text, err := strconv.Unquote(m[1])
	if err != nil {
		return nil
	}
	names := strings.Split(strings.ReplaceAll(text, `\`, ""), "|")
	return slices.DeleteFunc(names, func(n string) bool { return strings.HasSuffix(n, "-grpc@kubernetesgateway") })
}

func (tr traffic) series(name string, buckets bool, window float64, ticks []float64) []seriesJSON {
	line := func(label, value string, v func(tick float64) float64) seriesJSON {
		s := seriesJSON{Metric: map[string]string{"service": name, label: value}}
		for _, tick := range ticks {
			text := strconv.FormatFloat(v(tick), 'f', -1, 64)
			if tr.nan && label != "wr_kind" {
				text = "NaN"
			}
			s.Values = append(s.Values, [2]any{tick, text})
		}
		return s
	}
	constant := func(v float64) func(float64) float64 { return func(float64) float64 { return v } }
	total := tr.perSecond * window
	var lines []seriesJSON
	if buckets {
		for _, b := range bounds {
			n := total * (1 - tr.slow) * b.fast
			if b.le == "+Inf" {
				n = total
			}
			lines = append(lines, line("le", b.le, constant(n)))
		}
		return lines
	}
	lines = append(lines, line("code", "200", constant(total*(1-tr.failed))))
	if tr.failed > 0 {
		lines = append(lines, line("code", "500", constant(total*tr.failed)))
	}
	return append(lines,
		line("wr_kind", "newest", func(tick float64) float64 { return tick }),
		line("wr_kind", "oldest", func(tick float64) float64 { return tick - window }))
}
