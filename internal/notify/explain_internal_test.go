package notify

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestExplain has the errors that no receiver gives at once, or on every machine.
func TestExplain(t *testing.T) {
	read := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	tests := map[string]struct {
		err  error
		want string
	}{
		"patience is over":    {context.DeadlineExceeded, "does not answer within 10s"},
		"the system's wait":   {read("dial", os.ErrDeadlineExceeded), "does not answer within 10s"},
		"slow name server":    {&net.DNSError{Name: "s3cr3t", IsTimeout: true}, "its host name cannot be resolved"},
		"the controller ends": {context.Canceled, "was not waited for"},
		"reset":               {read("read", os.NewSyscallError("read", syscall.ECONNRESET)), "closes the connection"},
		"alert of TLS":        {read("remote error", errors.New("tls: s3cr3t")), "it ended the TLS handshake"},
		"no route":            {read("dial", os.NewSyscallError("connect", syscall.EHOSTUNREACH)), "the webhook cannot be reached"},
		"HTTP for HTTPS":      {http.ErrSchemeMismatch, "it does not speak TLS"},
		"unknown":             {errors.New("s3cr3t"), "what it answers is not HTTP"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := explain(&url.Error{Op: "Post", URL: "http://hooks/s3cr3t", Err: tc.err}).Error()
			if !strings.Contains(got, tc.want) || strings.Contains(got, "s3cr3t") {
				t.Errorf("%q, want %q in it, and no secret", got, tc.want)
			}
		})
	}
}
