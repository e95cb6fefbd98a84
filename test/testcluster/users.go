package testcluster

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
	adminUser      = "admin"
	controllerUser = "system:kube-controller-manager"
	schedulerUser  = "system:kube-scheduler"
	proxyUser      = "system:kube-proxy"
	nodeUser       = "system:node:" + NodeName
)

// groups of the users, whose roles Kubernetes comes with. The controllers would need a
// role for each of them, and their rights are not what is tested.
var groups = map[string]string{
	adminUser:      "system:masters",
	controllerUser: "system:masters",
	schedulerUser:  "",
	proxyUser:      "",
	nodeUser:       "system:nodes",
}

const apiServerURL = "https://" + nodeAddress + ":6443"

func (c *Cluster) path(name string) string { return filepath.Join(c.Dir, name) }

// writeSecrets writes the tokens of the users and the key of the service accounts.
func (c *Cluster) writeSecrets() error {
	c.tokens = map[string]string{}
	var lines strings.Builder
	for user, group := range groups {
		c.tokens[user] = rand.Text()
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", c.tokens[user], user, user, group)
	}
	if err := os.WriteFile(c.path("tokens.csv"), []byte(lines.String()), 0o600); err != nil {
		return fmt.Errorf("writing the API server's tokens: %w", err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("making the key for service accounts: %w", err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(c.path("service-account.key"), pem.EncodeToMemory(block), 0o600); err != nil {
		return fmt.Errorf("writing the key for service accounts: %w", err)
	}
	return nil
}

// certificate is what the API server makes for itself, with its issuer.
func (c *Cluster) certificate() string { return c.path("apiserver/apiserver.crt") }

// config returns how a user reaches the API server from this process, which is in
// another network, without a limit of requests per second.
func (c *Cluster) config(user string) (*rest.Config, error) {
	ca, err := os.ReadFile(c.certificate())
	if err != nil {
		return nil, fmt.Errorf("reading the API server's certificate: %w", err)
	}
	return &rest.Config{
		Host: apiServerURL, BearerToken: c.tokens[user], QPS: -1, Dial: c.DialContext,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca},
	}, nil
}

// writeKubeconfig writes a user's kubeconfig file, for processes in the cluster's
// network, and returns its path.
func (c *Cluster) writeKubeconfig(user string) (string, error) {
	ca, err := os.ReadFile(c.certificate())
	if err != nil {
		return "", fmt.Errorf("reading the API server's certificate: %w", err)
	}
	const name = "testcluster"
	path := c.path(strings.ReplaceAll(user, ":", "-") + ".kubeconfig")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: apiServerURL, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {Token: c.tokens[user]}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	}, path)
	if err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return path, nil
}
