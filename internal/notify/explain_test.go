package notify_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"io"
	stdlog "log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/notify"
)

const secretToken = "t0ken-s3cr3t"

// TestMain has receivers asked without a proxy, which would answer for those that are not there.
func TestMain(m *testing.M) {
	if err := os.Setenv("NO_PROXY", "*"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// echo answers every request with a text in which %s is what it was asked, token included.
// It reads on until the other side closes the connection, and then says so.
func echo(t *testing.T, text string) (address string, closed <-chan struct{}) {
	t.Helper()
	gone := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, strings.ReplaceAll(text, "%s", req.URL.Path+" "+req.Header.Get("Authorization")))
		if text != "" {
			_, _ = io.Copy(io.Discard, conn)
		}
		gone <- struct{}{}
	}))
	t.Cleanup(server.Close)
	return server.URL, gone
}

// tell sends one notification with a path and a token that are secret, and returns what came
// of it, and the log.
func tell(t *testing.T, address string) (result, log string) {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(secretToken), 0o600); err != nil {
		t.Fatal(err)
	}
	o := open(t, http.NotFoundHandler(), func(c *notify.Config) { c.TokenFile = token })
	o.write(o.urlFile, address+secretPath)
	o.start()
	o.sender.Announce(rolledBack())
	result, _ = o.result()
	o.mu.Lock()
	defer o.mu.Unlock()
	return result, o.log.String()
}

// TestTheLogHoldsNoAnswer: a receiver may send back what it was asked, its secrets included.
func TestTheLogHoldsNoAnswer(t *testing.T) {
	const noHTTP = "what it answers is not HTTP"
	tests := map[string]struct{ answer, problem string }{
		"a header without a colon": {"HTTP/1.1 200 OK\r\n%s\r\n\r\n", noHTTP},
		"a status line":            {"HTTP/1.1 %s\r\n\r\n", noHTTP},
		"no status line":           {"%s\r\n\r\n", noHTTP},
		"a transfer encoding":      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: %s\r\n\r\n", noHTTP},
		"a content length":         {"HTTP/1.1 200 OK\r\nContent-Length: %s\r\n\r\n", noHTTP},
		"a location":               {"HTTP/1.1 302 Found\r\nLocation: http://[%s\r\n\r\n", noHTTP},
		"a text of the status":     {"HTTP/1.1 403 %s\r\nContent-Length: 0\r\n\r\n", "the webhook answers 403"},
		"a body":                   {"HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\n%s", "the webhook answers 500"},
		"nothing":                  {"", "closes the connection before it has answered"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			address, _ := echo(t, tc.answer)
			result, log := tell(t, address)
			if result != "failed" || !strings.Contains(log, tc.problem) {
				t.Errorf("%s, and the log has not %q: %s", result, tc.problem, log)
			}
			if strings.Contains(log, "s3cr3t") {
				t.Errorf("the log has the secret: %s", log)
			}
		})
	}
}

// serveTLS serves nothing by TLS, with a certificate (nil: the one of net/http/httptest), and
// returns the address.
func serveTLS(t *testing.T, certificate *tls.Certificate) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	if certificate != nil {
		server.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS13}
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// certificateUntil makes a certificate that is valid until some time, for a day.
func certificateUntil(t *testing.T, end time.Time) *tls.Certificate {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: end.AddDate(0, 0, -1), NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(nil, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestTheLogHoldsNoAddress: it says in words of its own why a receiver is not reached.
func TestTheLogHoldsNoAddress(t *testing.T) {
	secure := serveTLS(t, nil)
	expired := serveTLS(t, certificateUntil(t, time.Now().Add(-time.Hour)))
	plain, _ := echo(t, "HTTP/1.1 400 Bad Request\r\n\r\n")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct{ address, problem string }{
		// A label of so many letters is no name, which is known without asking anybody.
		"no such name":         {"http://hooks-s3cr3t." + strings.Repeat("x", 70) + ".invalid", "its host name cannot be resolved"},
		"nobody listens":       {"http://" + listener.Addr().String(), "connection refused"},
		"no TLS":               {strings.Replace(plain, "http:", "https:", 1), "it does not speak TLS"},
		"an unknown authority": {secure, "its certificate comes from an unknown authority"},
		"another host":         {strings.Replace(secure, "127.0.0.1", "localhost", 1), "its certificate is for another host name"},
		"an old certificate":   {expired, "its certificate has expired or is not valid yet"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			result, log := tell(t, tc.address)
			if result != "failed" || !strings.Contains(log, tc.problem) {
				t.Errorf("%s, and the log has not %q: %s", result, tc.problem, log)
			}
			_, host, _ := strings.Cut(tc.address, "//")
			if strings.Contains(log, "s3cr3t") || strings.Contains(log, host) {
				t.Errorf("the log has the address %s: %s", tc.address, log)
			}
		})
	}
}

// TestNothingIsReadAfterTheAnswer: net/http writes into the log what comes on a connection
// that it keeps.
func TestNothingIsReadAfterTheAnswer(t *testing.T) {
	var log bytes.Buffer
	was := stdlog.Writer()
	stdlog.SetOutput(&log)
	t.Cleanup(func() { stdlog.SetOutput(was) })
	address, closed := echo(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n%s")
	if result, text := tell(t, address); result != "sent" {
		t.Errorf("%s: %s", result, text)
	}
	<-closed // the connection is closed after the line is logged
	stdlog.SetOutput(was)
	if strings.Contains(log.String(), "s3cr3t") {
		t.Errorf("the log has the secret: %s", log.String())
	}
}
