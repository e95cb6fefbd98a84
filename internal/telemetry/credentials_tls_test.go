package telemetry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// issued is a certificate with its key.
type issued struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	crt, pemKey string
}

func (i *issued) pair(t *testing.T) tls.Certificate {
	t.Helper()
	p, err := tls.X509KeyPair([]byte(i.crt), []byte(i.pemKey))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// issue makes a certificate; a nil issuer makes an authority of it.
func issue(t *testing.T, name string, issuer *issued, change ...func(*x509.Certificate)) *issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, key
	if issuer == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		template.DNSNames = []string{name}
		parent, signer = issuer.certificate, issuer.key
	}
	for _, c := range change {
		c(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return &issued{certificate: certificate, key: key, crt: text("CERTIFICATE", der), pemKey: text("PRIVATE KEY", pkcs8)}
}

func forLoopback(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }

func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }

// secureServer is a metrics server that counts the requests that reach it.
type secureServer struct {
	*httptest.Server
	requests atomic.Int64
}

// newSecureServer speaks TLS if it is given a configuration.
func newSecureServer(t *testing.T, config *tls.Config, reply http.HandlerFunc) *secureServer {
	t.Helper()
	s := &secureServer{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = nil // the test has a time of its own
		s.requests.Add(1)
		if err := r.ParseForm(); err != nil {
			t.Errorf("form: %v", err)
		}
		reply(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if s.TLS = config; config == nil {
		s.Start()
	} else {
		s.StartTLS()
	}
	t.Cleanup(s.Close)
	return s
}

// TestC39dTrust: a private authority is trusted where it is named, and nothing else
// is then; what is broken is an error, and never a fall-back. C39e: verification is
// left out only where the spec says so.
func TestC39dTrust(t *testing.T) {
	ca, otherCA := issue(t, "ca", nil), issue(t, "other ca", nil)
	good := issue(t, "prometheus.test", ca, forLoopback)
	tests := map[string]struct {
		server  *issued
		tls     *v1alpha1.TLS
		reason  string // empty: it works
		message string
	}{
		"no CA given":         {good, nil, v1alpha1.ReasonProviderError, "its certificate comes from an unknown authority: give the authority's certificate in health.prometheus.tls.ca"},
		"right CA":            {good, &v1alpha1.TLS{CA: ref("metrics", "ca")}, "", ""},
		"right one of two":    {good, &v1alpha1.TLS{CA: ref("metrics", "both")}, "", ""},
		"wrong CA":            {good, &v1alpha1.TLS{CA: ref("metrics", "other")}, v1alpha1.ReasonProviderError, "unknown authority"},
		"broken PEM":          {good, &v1alpha1.TLS{CA: ref("metrics", "broken")}, v1alpha1.ReasonProviderAuth, `key "broken" of Secret "metrics" is not a list of whole PEM certificates`},
		"half-broken PEM":     {good, &v1alpha1.TLS{CA: ref("metrics", "half")}, v1alpha1.ReasonProviderAuth, `key "half" of Secret "metrics" is not a list of whole PEM certificates`},
		"empty":               {good, &v1alpha1.TLS{CA: ref("metrics", "empty")}, v1alpha1.ReasonProviderAuth, `key "empty" of Secret "metrics"`},
		"a key for a CA":      {good, &v1alpha1.TLS{CA: ref("metrics", "key")}, v1alpha1.ReasonProviderAuth, `key "key" of Secret "metrics"`},
		"expired":             {issue(t, "prometheus.test", ca, forLoopback, expired), &v1alpha1.TLS{CA: ref("metrics", "ca")}, v1alpha1.ReasonProviderError, "has expired"},
		"another host":        {issue(t, "prometheus.test", ca), &v1alpha1.TLS{CA: ref("metrics", "ca")}, v1alpha1.ReasonProviderError, "health.prometheus.tls.serverName"},
		"its name is given":   {issue(t, "prometheus.test", ca), &v1alpha1.TLS{CA: ref("metrics", "ca"), ServerName: "prometheus.test"}, "", ""},
		"another name":        {good, &v1alpha1.TLS{CA: ref("metrics", "ca"), ServerName: "thanos.test"}, v1alpha1.ReasonProviderError, "health.prometheus.tls.serverName"},
		"only a server name":  {good, &v1alpha1.TLS{ServerName: "prometheus.test"}, v1alpha1.ReasonProviderError, "unknown authority"},
		"not verified":        {issue(t, "prometheus.test", otherCA, expired), &v1alpha1.TLS{InsecureSkipVerify: true}, "", ""},
		"verified after all":  {good, &v1alpha1.TLS{InsecureSkipVerify: false}, v1alpha1.ReasonProviderError, "unknown authority"},
		"no CA in the Secret": {good, &v1alpha1.TLS{CA: ref("metrics", "ca.crt")}, v1alpha1.ReasonProviderAuth, `Secret "metrics" has no key "ca.crt"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSecureServer(t, &tls.Config{Certificates: []tls.Certificate{tc.server.pair(t)}}, demanding(bearer("s3cr3t")))
			v := newVault("shop/metrics", "token", "s3cr3t", "ca", ca.crt, "other", otherCA.crt, "both", otherCA.crt+"\n# and\n"+ca.crt,
				"broken", ca.crt[:len(ca.crt)/2], "half", ca.crt+otherCA.crt[:len(otherCA.crt)/2], "empty", "", "key", good.pemKey)
			f := newFixture(t, s.URL, func(c *Config) { c.Secrets = v })
			f.Track(target("web", withPrometheus(v1alpha1.Prometheus{BearerToken: ref("metrics", "token"), TLS: tc.tls})))
			f.step(timeToVerdict)
			got := f.Verdict(key("web"))
			f.leaksNothing("s3cr3t")
			f.leaksNothing("BEGIN")
			if tc.reason == "" {
				if got.State != v1alpha1.VerdictHealthy || s.requests.Load() == 0 {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.State != v1alpha1.VerdictUnknown || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%+v", got)
			}
			if n := s.requests.Load(); n != 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

// TestClientCertificates: a server that wants one gets the one that is named.
func TestClientCertificates(t *testing.T) {
	ca, otherCA := issue(t, "ca", nil), issue(t, "other ca", nil)
	server, client, stranger := issue(t, "prometheus.test", ca, forLoopback), issue(t, "controller", ca), issue(t, "controller", otherCA)
	pool := x509.NewCertPool()
	pool.AddCert(ca.certificate)
	tests := map[string]struct {
		crt, key string
		reason   string
		message  string
	}{
		"the right one":     {client.crt, client.pemKey, "", ""},
		"none":              {"", "", v1alpha1.ReasonProviderError, "client certificate"},
		"another's":         {stranger.crt, stranger.pemKey, v1alpha1.ReasonProviderError, "health.prometheus.tls.certificate"},
		"key does not fit":  {client.crt, stranger.pemKey, v1alpha1.ReasonProviderAuth, `key "tls.key" of Secret "client" is not a private key in PEM that belongs to the certificate in key "tls.crt" of Secret "client"`},
		"broken":            {client.crt[:len(client.crt)/2], client.pemKey, v1alpha1.ReasonProviderAuth, `key "tls.crt" of Secret "client" is not a certificate`},
		"broken key":        {client.crt, client.pemKey[:len(client.pemKey)/2], v1alpha1.ReasonProviderAuth, `key "tls.key" of Secret "client"`},
		"changed over":      {client.pemKey, client.crt, v1alpha1.ReasonProviderAuth, `key "tls.crt" of Secret "client" is not a certificate`},
		"of all in one key": {client.crt + client.pemKey, client.crt + client.pemKey, "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSecureServer(t, &tls.Config{Certificates: []tls.Certificate{server.pair(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}, traffic(120, 0))
			v := newVault("shop/metrics", "ca", ca.crt)
			v.put("shop/client", "tls.crt", tc.crt, "tls.key", tc.key)
			spec := v1alpha1.Prometheus{TLS: &v1alpha1.TLS{CA: ref("metrics", "ca"), Certificate: ref("client", "tls.crt"), Key: ref("client", "tls.key")}}
			if tc.crt == "" {
				spec.TLS.Certificate, spec.TLS.Key = nil, nil
			}
			f := newFixture(t, s.URL, func(c *Config) { c.Secrets = v })
			f.Track(target("web", withPrometheus(spec)))
			f.step(timeToVerdict)
			got := f.Verdict(key("web"))
			if got.Reason != tc.reason && tc.reason != "" || !strings.Contains(got.Message, tc.message) || (tc.reason == "") != (got.State == v1alpha1.VerdictHealthy) {
				t.Errorf("%+v", got)
			}
			f.leaksNothing("BEGIN")
			v.put("shop/client", "tls.crt", client.crt, "tls.key", client.pemKey)
			f.step(15 * time.Second)
			if got := f.Verdict(key("web")); tc.crt != "" && got.State != v1alpha1.VerdictHealthy {
				t.Errorf("after the right one was put there: %+v", got)
			}
		})
	}
}

// TestTheControllersOwnAuthorities: --prometheus-ca-file stands for the system's.
func TestTheControllersOwnAuthorities(t *testing.T) {
	ca := issue(t, "ca", nil)
	s := newSecureServer(t, &tls.Config{Certificates: []tls.Certificate{issue(t, "prometheus.test", ca, forLoopback).pair(t)}}, traffic(120, 0))
	file := t.TempDir() + "/ca.crt"
	writeFile(t, file, "not yet")
	f := newFixture(t, s.URL, func(c *Config) { c.CAFile = file })
	f.Track(target("web"))
	f.Track(target("named", withPrometheus(v1alpha1.Prometheus{Address: s.URL})))
	f.step(timeToVerdict)
	if v := f.Verdict(key("web")); v.Reason != v1alpha1.ReasonProviderAuth || !strings.Contains(v.Message, "the controller's --prometheus-ca-file is not a list of whole PEM certificates") {
		t.Errorf("%+v", v)
	}
	writeFile(t, file, ca.crt)
	f.step(15 * time.Second)
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
		t.Errorf("%+v", v)
	}
	if v := f.Verdict(key("named")); v.Reason != v1alpha1.ReasonProviderError || !strings.Contains(v.Message, "unknown authority") {
		t.Errorf("one that names the address: %+v", v)
	}
	writeFile(t, file, issue(t, "other ca", nil).crt)
	f.step(15 * time.Second)
	if v := f.Verdict(key("web")); !strings.Contains(v.Message, "unknown authority: give the authority's certificate in the controller's --prometheus-ca-file") {
		t.Errorf("%+v", v)
	}
}
