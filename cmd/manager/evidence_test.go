package main

import (
	"flag"
	"io"
	"strings"
	"testing"
)

// TestWrongFlagsAreSaidAtTheStart runs the manager as far as it comes: none of these
// may get so far as to look for a cluster.
func TestWrongFlagsAreSaidAtTheStart(t *testing.T) {
	tests := map[string]struct {
		args    []string
		message string
	}{
		"entry without a scheme": {[]string{"--metrics-address-allow=http://a,prometheus.monitoring:9090"}, `--metrics-address-allow: entry 2: "prometheus.monitoring:9090" is no http or https URL; write one such as`},
		"password in an entry":   {[]string{"--metrics-address-allow=http://user:s3cr3t@a"}, "--metrics-address-allow: entry 1: must not hold a user name or password"},
		"address":                {[]string{"--prometheus-address=prometheus:9090"}, "--prometheus-address: it is no http or https URL: give one such as"},
		"password":               {[]string{"--prometheus-address=http://user:s3cr3t@a"}, "--prometheus-address: it must not hold a user name or password"},
		"token for nobody":       {[]string{"--prometheus-bearer-token-file=/token"}, "set that too"},
		"CA for nobody":          {[]string{"--prometheus-ca-file=/ca.crt"}, "set that too"},
		"CA over http":           {[]string{"--prometheus-ca-file=/ca.crt", "--prometheus-address=http://a"}, "--prometheus-address: it is no https URL"},
		"confirm":                {[]string{"--confirm=perhaps"}, "--confirm: "},
		"no worker":              {[]string{"--workers=0"}, "--workers: 0 rollouts at the same time is no rollout at all: give a number from 1"},
		"less than no worker":    {[]string{"--workers=-1"}, "--workers: -1 "},
		"no time to answer":      {[]string{"--prometheus-timeout=0s"}, "--prometheus-timeout: a wait of 0s is none: give one above 0s, such as 10s"},
		"less than no time":      {[]string{"--prometheus-timeout=-1m"}, "--prometheus-timeout: a wait of -1m0s is none"},
		"namespace in capitals":  {[]string{"--namespaces=shop,Checkout"}, `--namespaces: "Checkout" is no namespace, since it has capital letters: write checkout`},
		"no namespace":           {[]string{"--namespaces=shop/checkout"}, `--namespaces: "shop/checkout" is no namespace: `},
		"a list of nothing":      {[]string{"--namespaces=,"}, `--namespaces: "," names no namespace: give one or more`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := run(parse(t, tc.args...))
			if err == nil || !strings.Contains(err.Error(), tc.message) {
				t.Fatalf("%v, want %q", err, tc.message)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error repeats a password: %v", err)
			}
		})
	}
}

func TestEvidenceFlags(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"--metrics-address-allow="},
		{"--metrics-address-allow=https://*.example.com/prometheus, http://prometheus.monitoring:9090", "--prometheus-address=http://prometheus.monitoring:9090"},
		{"--prometheus-address=https://thanos.monitoring:9091", "--prometheus-ca-file=/ca.crt", "--prometheus-bearer-token-file=/token"},
		{"--prometheus-address=http://prometheus.monitoring:9090", "--prometheus-bearer-token-file=/token"},
	} {
		o := parse(t, args...)
		cfg, err := o.evidence.config()
		if err != nil || cfg.DefaultAddress != o.evidence.address || cfg.BearerTokenFile != o.evidence.tokenFile || cfg.CAFile != o.evidence.caFile {
			t.Errorf("%q: %v, %+v", args, err, cfg)
		}
	}
}

func parse(t *testing.T, args ...string) options {
	t.Helper()
	var o options
	fs := flag.NewFlagSet("manager", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.bind(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}
