package testbed

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// ManagerUser is the user that the manager runs as.
	ManagerUser = "weightedrollout-manager"

	adminUser   = "admin"
	gatewayUser = "traefik"
	// controllerUser is whom kube-controller-manager runs as, with all its controllers.
	controllerUser = "kube-controller-manager"
	// evidenceUser may look at the evidence of every rollout.
	evidenceUser = "evidence-reader"
)

// access holds what the API server and those who talk to it must agree on.
type access struct {
	tokens    map[string]string // by user
	tokenFile string
	saKeyFile string
	certDir   string
	server    string // URL, known once the port is
}

func newAccess(dir string) (*access, error) {
	a := &access{
		tokens:    map[string]string{},
		tokenFile: filepath.Join(dir, "tokens.csv"),
		saKeyFile: filepath.Join(dir, "service-account.key"),
		certDir:   filepath.Join(dir, "apiserver"),
	}
	var lines strings.Builder
	for _, user := range []string{adminUser, ManagerUser, gatewayUser, controllerUser, evidenceUser} {
		token := rand.Text()
		a.tokens[user] = token
		group := ""
		if user == adminUser || user == controllerUser {
			group = ",system:masters"
		}
		fmt.Fprintf(&lines, "%s,%s,%s%s\n", token, user, user, group)
	}
	if err := os.WriteFile(a.tokenFile, []byte(lines.String()), 0o600); err != nil {
		return nil, fmt.Errorf("writing the API server's tokens: %w", err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("making the key for service accounts: %w", err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(a.saKeyFile, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, fmt.Errorf("writing the key for service accounts: %w", err)
	}
	return a, nil
}

// caFile is the certificate that the API server makes for itself, with its issuer.
func (a *access) caFile() string { return filepath.Join(a.certDir, "apiserver.crt") }

// config returns how a user reaches the API server, without a limit of requests
// per second: a test wants to see the limits of what it tests.
func (a *access) config(user string) (*rest.Config, error) {
	ca, err := os.ReadFile(a.caFile())
	if err != nil {
		return nil, fmt.Errorf("reading the API server's certificate: %w", err)
	}
	return &rest.Config{
		Host:            a.server,
		BearerToken:     a.tokens[user],
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		QPS:             -1,
	}, nil
}

// writeKubeconfig writes a kubeconfig file for a user and returns its path.
func (a *access) writeKubeconfig(user, path string) (string, error) {
	config, err := a.config(user)
	if err != nil {
		return "", err
	}
	const name = "testbed"
	file := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	}
	if err := clientcmd.WriteToFile(file, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return path, nil
}
