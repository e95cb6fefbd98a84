package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

const (
	// evidencePatience bounds a question to the controller, and mostEvidence its answer,
	// in bytes.
	evidencePatience = 15 * time.Second
	mostEvidence     = 4 << 20
)

// evidenceFlags say where the live evidence is: behind the API server, or at an address.
type evidenceFlags struct {
	namespace, service string

	address, tokenFile, caFile string
	insecure                   bool
}

func (e *evidenceFlags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&e.namespace, "controller-namespace", defaultController, "Namespace of the controller, whose live evidence is asked for through the API server.")
	fs.StringVar(&e.service, "controller-service", defaultService, "Service of the controller's metrics, which has a port with the name https.")
	fs.StringVar(&e.address, "evidence", "", "Address of the controller's metrics, such as https://localhost:8443, to ask for its live evidence there. Default: through the API server.")
	fs.StringVar(&e.tokenFile, "token-file", "", "File with a bearer token that may read the evidence. Needs --evidence.")
	fs.StringVar(&e.caFile, "ca-file", "", "File with the certificates, in PEM, that the address is checked against. Needs --evidence.")
	fs.BoolVar(&e.insecure, "insecure-skip-tls-verify", false, "Do not check the certificate of the address: the controller makes its own. Through a port-forward nobody can listen in between. Needs --evidence.")
	complete(cmd, "controller-namespace", nil)
	complete(cmd, "controller-service", nil)
}

// evidenceSource is whom to ask for the live evidence of a rollout.
type evidenceSource interface {
	ask(ctx context.Context, wr *v1alpha1.WeightedRollout) (*live.Document, error)
}

// source reads the files that the flags name. Through the API server the evidence is
// asked for with the rights of the user in that cluster.
func (e *evidenceFlags) source(c *cluster) (evidenceSource, error) {
	asker, err := e.asker()
	switch {
	case err != nil:
		return nil, err
	case asker != nil:
		return asker, nil
	}
	for flag, value := range map[string]string{"--controller-namespace": e.namespace, "--controller-service": e.service} {
		if faults := validation.IsDNS1123Label(value); len(faults) > 0 {
			return nil, fmt.Errorf("%s %q is no name: %s", flag, value, faults[0])
		}
	}
	return &proxied{client: c.client, namespace: e.namespace, service: e.service}, nil
}

// asker asks a controller for its evidence.
type asker struct {
	base   *url.URL
	token  string
	client *http.Client
}

// asker reads the files that the flags name. It is nil without an address.
func (e *evidenceFlags) asker() (*asker, error) {
	if e.address == "" {
		if e.tokenFile != "" || e.caFile != "" || e.insecure {
			return nil, errors.New("--token-file, --ca-file and --insecure-skip-tls-verify need --evidence")
		}
		return nil, nil //nolint:nilnil // nobody is to be asked
	}
	base, err := url.Parse(e.address)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" {
		return nil, fmt.Errorf("--evidence %q is no address: give one such as https://localhost:8443", e.address)
	}
	token, err := e.token(base)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: e.insecure} //nolint:gosec // only where the user says so
	if config.RootCAs, err = e.authorities(); err != nil {
		return nil, err
	}
	return &asker{base: base, token: token, client: &http.Client{
		Timeout:   evidencePatience,
		Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment},
		// A token goes to the address that was named, and to no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// token reads the token, if there is one.
func (e *evidenceFlags) token(to *url.URL) (string, error) {
	if e.tokenFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(e.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", fmt.Errorf("--token-file: %s is empty", e.tokenFile)
	case to.Scheme != "https":
		return "", errors.New("--token-file needs an address with https: a token is not sent in clear text")
	}
	return token, nil
}

// authorities reads the certificates to check the address against; nil stands for those
// of the machine.
func (e *evidenceFlags) authorities() (*x509.CertPool, error) {
	if e.caFile == "" {
		return nil, nil //nolint:nilnil // nil has a meaning
	}
	pem, err := os.ReadFile(e.caFile)
	if err != nil {
		return nil, fmt.Errorf("--ca-file: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca-file: %s has no certificate in PEM", e.caFile)
	}
	return pool, nil
}

// ask gets the evidence of a rollout.
func (a *asker) ask(ctx context.Context, wr *v1alpha1.WeightedRollout) (*live.Document, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base.JoinPath(live.Prefix, wr.Namespace, wr.Name).String(), nil)
	if err != nil {
		return nil, err
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostEvidence))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp.StatusCode, body)
	}
	return documentFrom(body, wr)
}

// documentFrom reads the evidence of a rollout's present attempt.
func documentFrom(body []byte, wr *v1alpha1.WeightedRollout) (*live.Document, error) {
	document := &live.Document{}
	if err := json.Unmarshal(body, document); err != nil {
		return nil, fmt.Errorf("the answer is no evidence: %w", err)
	}
	if document.Attempt != wr.Status.Attempt {
		return nil, fmt.Errorf("it is about attempt %d", document.Attempt)
	}
	return document, nil
}

// refused says why there is no evidence, and what to do.
func refused(status int, body []byte) error {
	var said struct{ Error string }
	_ = json.Unmarshal(body, &said) // of other bodies nothing is quoted
	switch {
	case said.Error != "":
		return errors.New(said.Error)
	case status == http.StatusUnauthorized:
		return errors.New("it wants a token: give --token-file")
	case status == http.StatusForbidden:
		return errors.New("the token has no right to it: bind its owner to the role weightedrollout-evidence-reader")
	case status == http.StatusInternalServerError:
		return errors.New("the API server does not know the token, or cannot be reached: get a new one")
	}
	return fmt.Errorf("the answer is %d %s: is this the address of the controller's metrics?", status, http.StatusText(status))
}
