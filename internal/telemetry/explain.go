package telemetry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// explain turns an error into words for a status message. Only what is known here
// goes into them: the text of an error can hold URLs, queries and bodies.
func (s *server) explain(err error) *health.Problem {
	reason, what := v1alpha1.ReasonProviderError, ""
	var (
		status  *statusError
		refused *apiError
		large   *sizeError
		unclear *keyError
	)
	if unusable, ok := errors.AsType[*unusableError](err); ok {
		return unusable.problem
	}
	switch {
	case errors.As(err, &status) && (status.code == http.StatusUnauthorized || status.code == http.StatusForbidden):
		// Which of the two it is, a server may say now this and now that way.
		reason, what = v1alpha1.ReasonProviderAuth, s.refusal()+" (HTTP 401 or 403)"
	case errors.As(err, &status):
		what = fmt.Sprintf("answered HTTP %d", status.code)
	case errors.As(err, &refused):
		what = "refused the query (" + refused.class + ")"
	case errors.Is(err, errResting):
		what = "asked for a rest, and is not asked until that is over"
	case errors.Is(err, errCrowded):
		what = fmt.Sprintf("has so many queries under way that this one did not get its turn within %s", s.timeout)
	case errors.As(err, &large):
		what = "gave " + large.what + ", which is not read"
	case errors.As(err, &unclear):
		what = "gave a reply with the key " + unclear.key + " twice, or in another case than the Prometheus API has it"
	case errors.Is(err, errNoRoom):
		what = "gave a reply that does not fit in the controller's memory beside the others that are being read: raise its memory limit"
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

// refusal says what a server does that answers 401 or 403.
func (s *server) refusal() string {
	if s.credentials.has(useBearer, useUsername, useHeader, useCertificate) {
		return "refused the credentials"
	}
	return "refused to answer without credentials: give them in health.prometheus"
}

// unreachable says why there was no reply.
func (s *server) unreachable(err error) string {
	var (
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		op      *net.OpError
		network net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return "was not waited for"
	case errors.As(err, &dns):
		return "could not be reached: its name cannot be resolved"
	case errors.As(err, &cert):
		return "could not be reached: " + s.distrust(cert)
	case errors.As(err, &record):
		return "could not be reached: it does not speak TLS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "could not be reached: connection refused"
	case errors.As(err, &op) && op.Op == "remote error":
		// That is how crypto/tls marks the peer's own alerts.
		return "could not be reached: it ended the TLS handshake, as one does that wants a client certificate, or another one than health.prometheus.tls.certificate"
	case strings.HasPrefix(s.address, "https:") && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)):
		// An alert can be lost when the peer closes the connection right after it.
		return "closed the connection before it answered, as one does that wants a client certificate, or another one than health.prometheus.tls.certificate"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return fmt.Sprintf("did not answer within %s", s.timeout)
	}
	return "could not be reached"
}

// distrust says what is wrong with the server's certificate, and what cures it.
func (s *server) distrust(err error) string {
	var (
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
	)
	ca := "health.prometheus.tls.ca"
	if s.credentials.own {
		ca = "the controller's --prometheus-ca-file"
	}
	switch {
	case errors.As(err, &host):
		return "its certificate is for another host name: give a name that it has in health.prometheus.tls.serverName, or as the address's host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet: renew it"
	case errors.As(err, &authority):
		return "its certificate comes from an unknown authority: give the authority's certificate in " + ca
	}
	return "its certificate is not trusted"
}
