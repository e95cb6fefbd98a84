package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	// mostBody bounds, in bytes, what is read of a request.
	mostBody = 8 << 10
	// mostStreams bounds the pages that are open at once.
	mostStreams = 64
	// farewell is how long the server waits for answers under way when it ends.
	farewell = 2 * time.Second
)

// Options say what is shown and how.
type Options struct {
	Source Source
	// Orders lets the page give orders; nil: it only shows.
	Orders Orders
	// Scope says in words what is shown, such as: all namespaces.
	Scope string
	// Port on 127.0.0.1, from 1 to 65535; 0: any that is free.
	Port int
	// Now is the clock. Default: that of the machine.
	Now func() time.Time
}

// Server serves the page.
type Server struct {
	options  Options
	listener net.Listener
	guard    *guard
	hub      *hub
	lookouts *lookouts
	began    time.Time
	streams  atomic.Int32
	// life ends with the server.
	life context.Context //nolint:containedctx // what outlives a request is bound to it
	end  context.CancelFunc
}

// Listen opens the port. Nothing is served before Serve, which has to be called.
func Listen(ctx context.Context, options Options) (*Server, error) {
	if options.Port < 0 || options.Port > 65535 {
		return nil, fmt.Errorf("there is no port %d: give one from 1 to 65535, or 0 for any that is free", options.Port)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(options.Port)))
	if err != nil {
		return nil, fmt.Errorf("the port %d cannot be had: %w; give another one, or 0 for any that is free", options.Port, err)
	}
	port := options.Port
	if at, ok := listener.Addr().(*net.TCPAddr); ok {
		port = at.Port
	}
	s := &Server{options: options, listener: listener, guard: newGuard(port, options.Now), began: options.Now().UTC()}
	s.hub = newHub(options.Source, options.Now)
	s.lookouts = newLookouts(s.hub, options.Source)
	s.life, s.end = context.WithCancel(ctx)
	return s, nil
}

// Address is where the page is, with the secret that opens it.
func (s *Server) Address() string { return s.address(s.guard.token) }

// OneTimeAddress is one that opens the page once, and within a minute.
func (s *Server) OneTimeAddress() string { return s.address(s.guard.issue()) }

// address has the secret in its fragment, which a browser sends to nobody.
func (s *Server) address(secret string) string {
	return fmt.Sprintf("http://%s/#token=%s", s.listener.Addr(), secret)
}

// Serve serves the page until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.end)
	defer stop()
	defer s.end()
	go s.hub.run(s.life)
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 32 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("the page cannot be served any more: %w", err)
	case <-s.life.Done():
	}
	// The context is over; the farewell has its own time.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the page cannot be closed: %w", err)
	}
	return nil
}

// Handler is what Serve serves.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /", http.HandlerFunc(servePage))
	mux.HandleFunc("POST /api/session", s.session)
	mux.HandleFunc("GET /api/stream", s.guard.api(s.stream))
	mux.HandleFunc("POST /api/order", s.guard.api(s.order))
	return s.guard.protect(mux)
}

// session lets a browser in that shows the secret of the address.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	var shown struct {
		Token string `json:"token"`
	}
	switch {
	case !ownPage(r):
		refuse(w, http.StatusForbidden, "the request comes from another site")
	case !jsonOnly(w, r) || !readBody(w, r, &shown):
	case shown.Token == "" && s.guard.isIn(r):
		w.WriteHeader(http.StatusNoContent)
	case !s.guard.admits(shown.Token):
		refuse(w, http.StatusUnauthorized, "open the address that the command has printed: it has a secret, which is another one each time")
	default:
		s.guard.letIn(w)
		w.WriteHeader(http.StatusNoContent)
	}
}

// readBody reads a small JSON body of known fields.
func readBody(w http.ResponseWriter, r *http.Request, into any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "the body cannot be read: "+err.Error())
		return false
	}
	return true
}

// refuse answers with an error in words.
func refuse(w http.ResponseWriter, status int, says string) {
	answer(w, status, map[string]string{"error": says})
}

func answer(w http.ResponseWriter, status int, content any) {
	body, err := json.Marshal(content)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who has gone away is told nothing
}
