package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhatTimeCures: of the errors of a first request, and whether each stands for an API
// server that cannot be reached.
func TestWhatTimeCures(t *testing.T) {
	dial := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://c/apis", Err: &net.OpError{Op: "dial", Err: err}}
	}
	answer := func(code int32) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}}
	}
	for name, test := range map[string]struct {
		err                error
		unreachable, comes bool
	}{
		"refused":                {dial(syscall.ECONNREFUSED), true, true},
		"reset":                  {&url.Error{Err: syscall.ECONNRESET}, true, true},
		"no answer":              {&url.Error{Err: io.EOF}, true, true},
		"too slow":               {&url.Error{Err: context.DeadlineExceeded}, true, true},
		"a resolver that is off": {dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), true, true},
		"an unknown host":        {dial(&net.DNSError{Err: "no such host", IsNotFound: true}), true, false},
		"an unknown certificate": {&url.Error{Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, false, false},
		"no TLS":                 {&url.Error{Err: tls.RecordHeaderError{}}, false, false},
		"a refused handshake":    {&url.Error{Err: &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}}, false, false},
		"no credentials":         {&url.Error{Err: errors.New("getting credentials: exec: not found")}, false, false},
		"not ready":              {answer(http.StatusServiceUnavailable), false, true},
		"too many requests":      {answer(http.StatusTooManyRequests), false, true},
		"nobody":                 {answer(http.StatusUnauthorized), false, false},
		"no right":               {answer(http.StatusForbidden), false, false},
		"no such rollout":        {&missingError{"shop", "checkout"}, false, false},
		"no such kind":           {errNoSuchKind, false, false},
	} {
		err := unreached("https://c", test.err)
		_, unreachable := errors.AsType[*unreachableError](err)
		if unreachable != test.unreachable || comes(err) != test.comes {
			t.Errorf("%s: unreachable %t, and time cures it: %t", name, unreachable, comes(err))
		}
	}
}
