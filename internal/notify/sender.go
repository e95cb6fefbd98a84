package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/weightedrollout/weightedrollout/internal/metrics"
)

const (
	// attempts is how often a notification is tried, and firstPause how long is waited
	// after the first; each further pause is twice as long as the one before.
	attempts   = 6
	firstPause = time.Second
	// late is the age from which a notification says when it happened.
	late = 30 * time.Second
	// longestPause bounds what a receiver can ask for with Retry-After.
	longestPause = time.Minute
	// patience bounds one attempt.
	patience = 10 * time.Second
	// mostWaiting is how many notifications of a kind may wait for their turn, and oldest
	// how long: after that they are no news.
	mostWaiting = 500
	oldest      = 15 * time.Minute
)

// Config is what a Sender needs.
type Config struct {
	// URLFile holds the address of the webhook, which is a secret as a rule. It is read
	// anew for every notification.
	URLFile string
	// TokenFile holds a bearer token to send along; empty: none is sent. It is read anew
	// for every notification.
	TokenFile string
	// Payload makes the body.
	Payload *Payload
	// Least is the lowest level that is told.
	Least Level
	// Count is told how each notification ended.
	Count func(k types.NamespacedName, result string)
	// Clock is the clock of the pauses.
	Clock clock.Clock
	// Log gets failures, without addresses.
	Log logr.Logger
}

// Sender sends notifications: warnings one after the other, and the rest one after the other,
// so that no warning waits behind good news. It never keeps a rollout waiting: what cannot be
// sent in time is dropped and counted.
type Sender struct {
	cfg            Config
	warnings, rest chan Transition
	client         *http.Client
}

// New returns a Sender. What is wrong with its files shows when they are read: they may be
// put right under it.
func New(cfg Config) *Sender {
	return &Sender{cfg: cfg, warnings: make(chan Transition, mostWaiting), rest: make(chan Transition, mostWaiting), client: &http.Client{
		Timeout: patience, Transport: transport(),
		// What is told goes to the address that was named, and to no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// transport takes every connection for one attempt: what comes on one that waits for the
// next request net/http would write into the log as it is.
func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	t = t.Clone()
	t.DisableKeepAlives = true
	return t
}

// Problem says what is wrong with the files at the moment; nil if they can be used.
func (s *Sender) Problem() error {
	_, err := s.address()
	_, tokenErr := s.token()
	return errors.Join(err, tokenErr)
}

// NeedLeaderElection says that only the leader sends.
func (s *Sender) NeedLeaderElection() bool { return true }

// Announce hands a transition over, without waiting.
func (s *Sender) Announce(t Transition) {
	if rank(t.Level) < rank(s.cfg.Least) {
		return
	}
	queue := s.rest
	if t.Level == LevelWarning {
		queue = s.warnings
	}
	select {
	case queue <- t:
	default:
		s.end(t, metrics.NotificationDropped, errors.New("too many notifications wait for their turn"))
	}
}

// rank orders the levels.
func rank(l Level) int {
	switch l {
	case LevelWarning:
		return 2
	case LevelAction:
		return 1
	case LevelInfo:
	}
	return 0
}

// ParseLevel reads a level's name.
func ParseLevel(name string) (Level, error) {
	for _, l := range []Level{LevelInfo, LevelAction, LevelWarning} {
		if string(l) == name {
			return l, nil
		}
	}
	return "", fmt.Errorf("%q is no level: use %s, %s or %s", name, LevelInfo, LevelAction, LevelWarning)
}

// Start sends until the context ends. It returns nil.
func (s *Sender) Start(ctx context.Context) error {
	var workers sync.WaitGroup
	for _, queue := range []chan Transition{s.warnings, s.rest} {
		workers.Go(func() { s.work(ctx, queue) })
	}
	workers.Wait()
	return nil
}

func (s *Sender) work(ctx context.Context, queue <-chan Transition) {
	for {
		select {
		case <-ctx.Done():
			return
		case t := <-queue:
			if waited := s.cfg.Clock.Since(t.At); waited > oldest {
				s.end(t, metrics.NotificationDropped, fmt.Errorf("it is %s old", waited.Round(time.Second)))
			} else if err := s.deliver(ctx, t); err != nil {
				s.end(t, metrics.NotificationFailed, err)
			} else {
				s.end(t, metrics.NotificationSent, nil)
			}
		}
	}
}

func (s *Sender) end(t Transition, result string, err error) {
	k := types.NamespacedName{Namespace: t.Namespace, Name: t.Name}
	if err != nil {
		s.cfg.Log.Info("a notification was not sent", "rollout", k.String(), "phase", t.Phase, "result", result, "problem", err.Error())
	}
	s.cfg.Count(k, result)
}

// deliver tries until the receiver has taken it, or it is plain that it never will.
func (s *Sender) deliver(ctx context.Context, t Transition) error {
	pause := firstPause
	for tried := 1; ; tried++ {
		t.Late = s.cfg.Clock.Since(t.At) > late
		body, err := s.cfg.Payload.body(t)
		if err != nil {
			return err
		}
		wait, again, err := s.send(ctx, body)
		if err == nil || !again || tried == attempts {
			return err
		}
		if tried == 1 {
			s.cfg.Log.Info("a notification is tried again", "rollout", t.Namespace+"/"+t.Name, "phase", t.Phase, "problem", err.Error())
		}
		timer := s.cfg.Clock.NewTimer(min(max(wait, pause), longestPause))
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("the controller stops: %w", err)
		case <-timer.C():
		}
		pause *= 2
	}
}

// send tries once. It says whether another attempt may help, and how long the receiver
// wants to be left alone.
func (s *Sender) send(ctx context.Context, body []byte) (wait time.Duration, again bool, err error) {
	address, err := s.address()
	if err != nil {
		return 0, true, err // a Secret that is being changed
	}
	token, err := s.token()
	if err != nil {
		return 0, true, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, false, errors.New("the address of the webhook cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "weightedrollout")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, true, explain(err)
	}
	defer resp.Body.Close()
	switch code := resp.StatusCode; {
	case code/100 == 2:
		return 0, false, nil
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code/100 == 5:
		return s.retryAfter(resp.Header), true, fmt.Errorf("the webhook answers %d", code)
	default:
		return 0, false, fmt.Errorf("the webhook answers %d", code)
	}
}

// retryAfter reads the header of that name, which holds seconds or a time (RFC 9110, section
// 10.2.3); 0 if there is none, or the time is over.
func (s *Sender) retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), 3600)) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(at.Sub(s.cfg.Clock.Now()), 0)
}

// address reads the address of the webhook.
func (s *Sender) address() (string, error) {
	text, err := os.ReadFile(s.cfg.URLFile)
	if err != nil {
		return "", fmt.Errorf("read the address of the webhook: %w", err)
	}
	address := strings.TrimSpace(string(text))
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s holds no http or https URL", s.cfg.URLFile)
	}
	return address, nil
}

// token reads the bearer token; empty if none is to be sent.
func (s *Sender) token() (string, error) {
	if s.cfg.TokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(s.cfg.TokenFile)
	if err != nil {
		return "", fmt.Errorf("read the token of the webhook: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", fmt.Errorf("%s holds no token", s.cfg.TokenFile)
	}
	return token, nil
}
