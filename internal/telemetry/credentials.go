package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/secrets"
)

// SecretsRole is the ClusterRole that lets the controller read the Secrets of the
// namespaces in which it is bound.
const SecretsRole = "weightedrollout-metrics-secrets"

// Secrets are where credentials are kept; package secrets has them.
type Secrets interface {
	// Hold has a Secret kept up to date until it is released as often as it was held.
	Hold(types.NamespacedName)
	// Release is the opposite of Hold.
	Release(types.NamespacedName)
	// Read returns the present data of a Secret that is held. Its errors are those of
	// package secrets.
	Read(context.Context, types.NamespacedName) (map[string][]byte, error)
}

// noSecrets stands in where the controller reads no Secrets at all.
type noSecrets struct{}

func (noSecrets) Hold(types.NamespacedName)    {}
func (noSecrets) Release(types.NamespacedName) {}
func (noSecrets) Read(context.Context, types.NamespacedName) (map[string][]byte, error) {
	return nil, secrets.ErrForbidden
}

// credentials are what a server is asked with, and how it is trusted. They know where
// the texts are kept, and read them anew for every request: that costs no call, since
// Secrets are watched.
type credentials struct {
	parts      []part
	serverName string
	insecure   bool
	own        bool // the controller's, and not those of a rollout
	secrets    Secrets
}

// use is what a part of the credentials is for.
type use int

const (
	useBearer use = iota
	useUsername
	usePassword
	useHeader
	useCA
	useCertificate
	useKey
)

// part is one of the texts that credentials are made of.
type part struct {
	use    use
	header string // the name of the header
	value  string // of the header, where the text is kept nowhere
	from   *source
}

// source is where a text is kept: a key of a Secret, or a file that a flag names.
type source struct {
	secret     types.NamespacedName
	key        string
	file, flag string
}

// String names the source in messages.
func (s *source) String() string {
	if s.file != "" {
		return "the file of the controller's " + s.flag
	}
	return fmt.Sprintf("key %q of Secret %q", s.key, s.secret.Name)
}

// credentialsOf returns the credentials that a spec names. The Secrets are those of
// the rollout's own namespace, whatever it says.
func credentialsOf(namespace string, p *v1alpha1.Prometheus, from Secrets) *credentials {
	c := &credentials{secrets: from}
	add := func(u use, header, value string, ref *v1alpha1.SecretKeyReference) {
		q := part{use: u, header: header, value: value}
		if ref != nil {
			q.from = &source{secret: types.NamespacedName{Namespace: namespace, Name: ref.Name}, key: ref.Key}
		}
		if ref != nil || u == useHeader {
			c.parts = append(c.parts, q)
		}
	}
	if p == nil {
		return c
	}
	add(useBearer, "", "", p.BearerToken)
	if p.BasicAuth != nil {
		add(useUsername, "", "", &p.BasicAuth.Username)
		add(usePassword, "", "", &p.BasicAuth.Password)
	}
	for _, h := range p.Headers {
		add(useHeader, h.Name, h.Value, h.ValueFrom)
	}
	if p.TLS != nil {
		add(useCA, "", "", p.TLS.CA)
		add(useCertificate, "", "", p.TLS.Certificate)
		add(useKey, "", "", p.TLS.Key)
		c.serverName, c.insecure = p.TLS.ServerName, p.TLS.InsecureSkipVerify
	}
	return c
}

// ownCredentials are those that the controller was started with for its own server.
func ownCredentials(cfg Config) *credentials {
	c := &credentials{own: true, secrets: cfg.Secrets}
	if cfg.BearerTokenFile != "" {
		c.parts = append(c.parts, part{use: useBearer, from: &source{file: cfg.BearerTokenFile, flag: "--prometheus-bearer-token-file"}})
	}
	if cfg.CAFile != "" {
		c.parts = append(c.parts, part{use: useCA, from: &source{file: cfg.CAFile, flag: "--prometheus-ca-file"}})
	}
	return c
}

// named lists the Secrets that hold the texts, each once.
func (c *credentials) named() []types.NamespacedName {
	var names []types.NamespacedName
	for _, p := range c.parts {
		if p.from != nil && p.from.file == "" && !slices.Contains(names, p.from.secret) {
			names = append(names, p.from.secret)
		}
	}
	return names
}

func (c *credentials) hold() {
	for _, name := range c.named() {
		c.secrets.Hold(name)
	}
}

func (c *credentials) release() {
	for _, name := range c.named() {
		c.secrets.Release(name)
	}
}

// has says whether a part of the credentials has one of the uses.
func (c *credentials) has(uses ...use) bool {
	return slices.ContainsFunc(c.parts, func(p part) bool { return slices.Contains(uses, p.use) })
}

// read returns the texts, in the order of the parts. The problem names the source of
// the first one that is not there.
func (c *credentials) read(ctx context.Context) ([]string, *health.Problem) {
	texts := make([]string, len(c.parts))
	// Each Secret is looked at once: a user name must not go with another password.
	held := make(map[types.NamespacedName]heldSecret, 1)
	for i, p := range c.parts {
		if p.from == nil {
			texts[i] = p.value
			continue
		}
		text, problem := c.text(ctx, p.from, held)
		if problem != nil {
			return nil, problem
		}
		texts[i] = string(text)
	}
	return texts, nil
}

// heldSecret is what reading a Secret has given.
type heldSecret struct {
	data map[string][]byte
	err  error
}

func (c *credentials) text(ctx context.Context, s *source, held map[types.NamespacedName]heldSecret) ([]byte, *health.Problem) {
	if s.file != "" {
		text, err := os.ReadFile(s.file)
		if err != nil {
			return nil, unusable("%s cannot be read", s)
		}
		return text, nil
	}
	read, known := held[s.secret]
	if !known {
		read.data, read.err = c.secrets.Read(ctx, s.secret)
		held[s.secret] = read
	}
	data, err := read.data, read.err
	name, namespace := s.secret.Name, s.secret.Namespace
	switch {
	case errors.Is(err, secrets.ErrNotFound):
		return nil, unusable("Secret %q does not exist in namespace %q: create it, or correct health.prometheus", name, namespace)
	case errors.Is(err, secrets.ErrForbidden):
		return nil, unusable("the controller may not read Secret %q in namespace %q: bind ClusterRole %s in the namespace", name, namespace, SecretsRole)
	case err != nil:
		return nil, unusable("Secret %q in namespace %q could not be read: the API server does not answer", name, namespace)
	}
	text, ok := data[s.key]
	if !ok {
		return nil, unusable("Secret %q has no key %q: add the key, or correct health.prometheus", name, s.key)
	}
	return text, nil
}

// unusable says why credentials cannot be used. It never has a secret text itself.
func unusable(format string, args ...any) *health.Problem {
	return &health.Problem{Reason: v1alpha1.ReasonProviderAuth, Message: "no query is sent: " + fmt.Sprintf(format, args...)}
}

// hasCredentials says whether a spec names anything beside an address. It then gets
// none of the controller's own credentials: a header of a tenant's, or a certificate
// that nobody checks, must not go together with a token that is not the tenant's.
func hasCredentials(p *v1alpha1.Prometheus) bool {
	return p != nil && (p.BearerToken != nil || p.BasicAuth != nil || len(p.Headers) > 0 || p.TLS != nil)
}

// identity is the same for two rollouts exactly if one server can be asked for both
// at once: same address, same credentials. Secrets of two namespaces are different
// even if their names are the same.
func identity(namespace, address string, p *v1alpha1.Prometheus, c *credentials) string {
	id := struct {
		Address, Namespace string
		Own                bool
		Spec               *v1alpha1.Prometheus
	}{Address: address, Own: c.own}
	if len(c.named()) > 0 {
		id.Namespace = namespace
	}
	if hasCredentials(p) {
		id.Spec = p.DeepCopy()
		id.Spec.Address = ""
		slices.SortFunc(id.Spec.Headers, func(a, b v1alpha1.Header) int { return cmp.Compare(a.Name, b.Name) })
	}
	text, err := json.Marshal(id)
	if err != nil {
		// Strings and booleans can always be written.
		return namespace + "/" + address
	}
	return string(text)
}

// settingsProblem says what in the settings cannot be carried out, whatever the
// Secrets hold.
func settingsProblem(scheme string, p *v1alpha1.Prometheus) *health.Problem {
	if p == nil {
		return nil
	}
	bad := ""
	var seen []string
	for _, h := range p.Headers {
		name := strings.ToLower(h.Name)
		if slices.Contains(seen, name) {
			bad = fmt.Sprintf("health.prometheus.headers has %q twice: remove one of them", h.Name)
		}
		seen = append(seen, name)
	}
	switch {
	case p.TLS == nil:
	case scheme != "https":
		bad = "health.prometheus.tls is of no use with an http address: give an https one, or remove tls"
	case (p.TLS.Certificate == nil) != (p.TLS.Key == nil):
		bad = "health.prometheus.tls has only one of certificate and key: set both, or neither"
	}
	if bad == "" {
		return nil
	}
	return &health.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: bad}
}
