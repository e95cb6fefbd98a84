package telemetry

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net/http"
	"strings"

	"k8s.io/client-go/util/cert"

	"github.com/weightedrollout/weightedrollout/internal/health"
)

// usesTLS says whether the credentials need TLS settings of their own.
func (c *credentials) usesTLS() bool {
	return c.serverName != "" || c.insecure || c.has(useCA, useCertificate, useKey)
}

// headers returns the headers that the texts make.
func (c *credentials) headers(texts []string) (http.Header, *health.Problem) {
	made := &http.Request{Header: http.Header{}}
	var user string
	for i, p := range c.parts {
		if p.use > useHeader {
			continue
		}
		text := strings.TrimRight(texts[i], "\r\n")
		if p.from != nil {
			if problem := headerProblem(p, text); problem != nil {
				return nil, problem
			}
		}
		switch p.use {
		case useBearer:
			made.Header.Set("Authorization", "Bearer "+text)
		case useUsername:
			user = text
		case usePassword:
			made.SetBasicAuth(user, text)
		case useHeader:
			made.Header.Set(p.header, text)
		default:
		}
	}
	return made.Header, nil
}

// headerProblem says why a text cannot be sent in a header.
func headerProblem(p part, text string) *health.Problem {
	switch {
	case text == "":
		return unusable("%s is empty", p.from)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return unusable("%s has a line break or another control character inside", p.from)
	case p.use == useUsername && strings.Contains(text, ":"):
		return unusable("%s has a colon, which a user name cannot have", p.from)
	case p.use == useBearer && strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || r > '~' }):
		return unusable("%s has a blank or a character that is not ASCII, which a token cannot have", p.from)
	}
	return nil
}

// tlsConfig returns the TLS settings that the texts make. Nothing falls back to
// something weaker: what cannot be read is a problem.
func (c *credentials) tlsConfig(texts []string) (*tls.Config, *health.Problem) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.serverName}
	// Only where the spec says so in so many words.
	config.InsecureSkipVerify = c.insecure
	var certificate part
	var chain string
	for i, p := range c.parts {
		switch p.use {
		case useCA:
			pool, ok := authorities([]byte(texts[i]))
			if !ok {
				return nil, unusable("%s is not a list of whole PEM certificates", p.from)
			}
			config.RootCAs = pool
		case useCertificate:
			if _, err := cert.ParseCertsPEM([]byte(texts[i])); err != nil {
				return nil, unusable("%s is not a certificate in PEM", p.from)
			}
			certificate, chain = p, texts[i]
		case useKey:
			pair, err := tls.X509KeyPair([]byte(chain), []byte(texts[i]))
			if err != nil {
				return nil, unusable("%s is not a private key in PEM that belongs to the certificate in %s", p.from, certificate.from)
			}
			config.Certificates = []tls.Certificate{pair}
		default:
		}
	}
	return config, nil
}

// authorities reads PEM certificates. The library leaves out what it cannot read as a
// block, so the blocks are counted: a half-broken list would trust too little.
func authorities(text []byte) (*x509.CertPool, bool) {
	all, err := cert.ParseCertsPEM(text)
	if err != nil || len(all) != bytes.Count(text, []byte("-----BEGIN ")) {
		return nil, false
	}
	pool := x509.NewCertPool()
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool, true
}

// newTransport returns a transport with the settings of http.DefaultTransport and, if
// they are not nil, the given ones of TLS.
func newTransport(perHost int, settings *tls.Config) *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if ok {
		t = t.Clone()
	} else {
		t = &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	}
	t.MaxIdleConnsPerHost = perHost
	// What a server sends before anybody reads it.
	t.MaxResponseHeaderBytes = 64 << 10
	t.HTTP2 = &http.HTTP2Config{MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 1 << 20}
	if settings != nil {
		t.TLSClientConfig = settings
	}
	return t
}

// withHeaders adds headers to every request.
type withHeaders struct {
	header http.Header
	next   http.RoundTripper
}

// RoundTrip sends a copy of the request that has the headers.
func (w *withHeaders) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	maps.Copy(request.Header, w.header)
	return w.next.RoundTrip(request)
}
