package testbed

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EvidenceRole is the role of those who may look at the evidence of every rollout.
// The project's manifests have it.
const EvidenceRole = "weightedrollout-evidence-reader"

// mostEvidence bounds, in bytes, what is read of one answer.
const mostEvidence = 1 << 20

// unverified trusts whatever certificate it is shown: the manager makes its own, and
// nobody else is on a loopback port of the bed. It follows no redirect.
var unverified = &http.Client{
	Timeout:       30 * time.Second,
	Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// EvidenceToken returns a bearer token of somebody who has the EvidenceRole.
func (b *Bed) EvidenceToken() string { return b.access.tokens[evidenceUser] }

// ServiceAccountToken makes a service account, unless it is there already, and returns
// a token for it, as kubectl create token does. The account comes without any right.
func (b *Bed) ServiceAccountToken(ctx context.Context, namespace, name string) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := b.Client.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("creating service account %s/%s: %w", namespace, name, err)
	}
	request := &authenticationv1.TokenRequest{}
	if err := b.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("creating a token for service account %s/%s: %w", namespace, name, err)
	}
	return request.Status.Token, nil
}

// Ask gets a path from the manager's metrics server, as the bearer of a token; an empty
// token is nobody's. The manager must have been started with Metrics.
func (m *Manager) Ask(ctx context.Context, path, token string) (status int, body []byte, err error) {
	if m.MetricsAddress == "" {
		return 0, nil, errors.New("asking the manager: it was started without its metrics")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.MetricsAddress+path, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the manager: %w", err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := unverified.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("asking the manager: %w", err)
	}
	defer resp.Body.Close()
	if body, err = io.ReadAll(io.LimitReader(resp.Body, mostEvidence)); err != nil {
		return 0, nil, fmt.Errorf("reading the manager's answer: %w", err)
	}
	return resp.StatusCode, body, nil
}
