package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// unreachableError says that there was no answer from the API server.
type unreachableError struct {
	server string
	err    error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("the API server %s cannot be reached: %v: is the cluster up, and is this the right --context?", e.server, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// unreached turns an error of a connection into an *unreachableError, and leaves others,
// such as an answer or a certificate that is not trusted, as they are.
func unreached(server string, err error) error {
	cause := err
	if e, ok := errors.AsType[*url.Error](err); ok {
		cause = e.Err // without the address of the one object
	}
	if silent(cause) {
		return &unreachableError{server, cause}
	}
	return err
}

// silent tells whether an error is that of a connection which was not made or not kept.
func silent(err error) bool {
	if untrusted(err) {
		return false
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op != "remote error" // with which the other side refuses a handshake
	}
	timed, ok := errors.AsType[net.Error](err)
	return ok && timed.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// untrusted tells whether an error is about the API server's certificate.
func untrusted(err error) bool {
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	_, authority := errors.AsType[x509.UnknownAuthorityError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	return verification || authority || record
}

// comes tells whether time may cure an error of an API server that has not answered yet:
// there is no connection, or it says that it is not ready. A host that nobody knows is a
// mistake.
func comes(err error) bool {
	if _, ok := errors.AsType[*unreachableError](err); ok {
		unknown, ok := errors.AsType[*net.DNSError](err)
		return !ok || !unknown.IsNotFound
	}
	_, answered := errors.AsType[*apierrors.StatusError](err)
	return answered && passes(err)
}

// hopeless tells whether there is no use in asking an API server again, which has answered
// before or not.
func hopeless(err error, answered bool) bool { return !passes(err) || !answered && !comes(err) }

// passes tells whether an error of an API server that has answered before may go by
// itself.
func passes(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return !errors.Is(err, errNoSuchKind)
	}
	code := int(status.ErrStatus.Code)
	return code >= http.StatusInternalServerError || slices.Contains([]int{http.StatusTooManyRequests, http.StatusRequestTimeout, http.StatusGone}, code)
}
