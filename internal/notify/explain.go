package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
)

// explain turns an error of the HTTP client into words for the log. Only what is known here
// goes into them: the text of an error can hold the address, and whatever the receiver sends
// back of the request, the token included.
func explain(err error) error {
	var (
		dns     *net.DNSError
		op      *net.OpError
		network net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("the webhook was not waited for")
	case errors.As(err, &dns):
		return errors.New("the webhook cannot be reached: its host name cannot be resolved")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("the webhook does not answer within %s", patience)
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("the webhook cannot be reached: connection refused")
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the webhook closes the connection before it has answered")
	}
	if problem := distrust(err); problem != "" {
		return errors.New("the webhook cannot be reached: " + problem)
	}
	if errors.As(err, &op) {
		return errors.New("the webhook cannot be reached")
	}
	return errors.New("the webhook, or a proxy before it, cannot be used: what it answers is not HTTP, or the proxy refuses")
}

// distrust says why there is no TLS with the receiver; empty if TLS is not to blame.
func distrust(err error) string {
	var (
		cert      *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		op        *net.OpError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
	)
	switch {
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS"
	case errors.As(err, &op) && op.Op == "remote error":
		// That is how crypto/tls marks the peer's own alerts.
		return "it ended the TLS handshake"
	case !errors.As(err, &cert):
		return ""
	case errors.As(err, &host):
		return "its certificate is for another host name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet"
	case errors.As(err, &authority):
		return "its certificate comes from an unknown authority"
	}
	return "its certificate is not trusted"
}
