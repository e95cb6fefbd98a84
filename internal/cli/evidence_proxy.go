package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

const (
	// defaultController and defaultService are those of the manifests.
	defaultController = "weightedrollout-system"
	defaultService    = "weightedrollout-metrics"

	// evidenceRole is the Role that lets somebody ask through the API server.
	evidenceRole = "weightedrollout-evidence-proxy"

	// replicaTries is how often the controller is asked: the API server picks one of its
	// replicas at random, and only one of them has evidence. Of two, all but one question
	// in 65,536 finds it.
	replicaTries = 16
)

// errNoRight says that a person may not ask for the evidence, which will stay so.
var errNoRight = errors.New("no right to ask the controller through the API server")

// proxied asks the controller through the API server's proxy of its Service. The API
// server takes the user's token away, so the controller is shown that the user knows the
// rollout's uid.
type proxied struct {
	client             *rest.RESTClient
	namespace, service string
}

func (p *proxied) ask(ctx context.Context, wr *v1alpha1.WeightedRollout) (*live.Document, error) {
	ctx, cancel := context.WithTimeout(ctx, evidencePatience)
	defer cancel()
	var idle error
	for range replicaTries {
		code, body, err := p.get(ctx, wr)
		switch {
		case code == http.StatusOK:
			return documentFrom(body, wr)
		case code == 0:
			return nil, err
		case code != http.StatusServiceUnavailable || saidBy(body) == "":
			return nil, p.refused(code, body)
		}
		idle = errors.New(saidBy(body))
	}
	return nil, fmt.Errorf("no replica of the controller that was asked has evidence: %w", idle)
}

// get asks one replica. The code is 0 where there was no answer.
func (p *proxied) get(ctx context.Context, wr *v1alpha1.WeightedRollout) (code int, body []byte, err error) {
	at := p.client.Get().AbsPath("/api/v1/namespaces", p.namespace, "services", "https:"+p.service+":https", "proxy"+live.Prefix, wr.Namespace, wr.Name).URL()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set(live.UIDHeader, string(wr.UID))
	req.Header.Set("Accept", "application/json")
	client := p.client.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, mostEvidence))
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, body, nil
}

// saidBy is the controller's own word about a refusal; empty: it is not the controller's.
func saidBy(body []byte) string {
	var said struct{ Error string }
	if json.Unmarshal(body, &said) != nil {
		return ""
	}
	return said.Error
}

// refused says why there is no evidence, and what to do.
func (p *proxied) refused(code int, body []byte) error {
	if said := saidBy(body); said != "" {
		return errors.New(said)
	}
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
		status.Message = ""
	}
	at := fmt.Sprintf("the Service %s in the namespace %s", p.service, p.namespace)
	switch {
	case code == http.StatusForbidden:
		return fmt.Errorf("%w: have the Role %s in the namespace %s bound to you (it is get of services/proxy on %s)", errNoRight, evidenceRole, p.namespace, p.service)
	case code == http.StatusUnauthorized && status.Message == "":
		return errors.New("the controller wants a token: it is older than this program; give --evidence and --token-file")
	case code == http.StatusNotFound && status.Message == "":
		return fmt.Errorf("%s serves no evidence: is it the controller's, and does that run with --metrics-secure?", at)
	case code == http.StatusNotFound, code == http.StatusServiceUnavailable:
		return fmt.Errorf("the API server finds no controller behind %s: look whether it runs, or name it with --controller-namespace and --controller-service", at)
	case status.Message != "":
		return fmt.Errorf("the API server cannot ask %s: %s", at, status.Message)
	}
	return fmt.Errorf("%s answers %d %s", at, code, http.StatusText(code))
}
