package gateway

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// front stands before a podinfo. While it is broken it asks podinfo for something else
// than the client does, as a version with a fault would answer something else.
type front struct{ broken atomic.Bool }

// openFront listens at an address until the test ends, and passes every request on. name
// is what it says of itself in each answer.
func (s *shop) openFront(name, address, to string, protocols *http.Protocols, spoil func(*http.Request)) *front {
	s.t.Helper()
	target, err := url.Parse(to)
	s.must(err, "read the address of podinfo")
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", address)
	s.must(err, "listen as "+name)
	f := &front{}
	transport := &http.Transport{Protocols: protocols, MaxIdleConnsPerHost: 64}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			if f.broken.Load() {
				spoil(r.Out)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			resp.Header.Set(answeredBy, name)
			return nil
		},
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0), // clients that leave when the test ends
	}
	server := &http.Server{Handler: proxy, Protocols: protocols, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	s.t.Cleanup(func() {
		_ = server.Close()
		transport.CloseIdleConnections()
	})
	return f
}
