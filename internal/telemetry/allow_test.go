package telemetry

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestAllowlist(t *testing.T) {
	tests := map[string]struct {
		list    string
		allowed []string
		refused []string
	}{
		"any":  {"*", []string{"http://a", "https://b:1/x/../y"}, nil},
		"none": {"", nil, []string{"http://a", "https://b"}},
		"exact": {
			"http://prometheus.monitoring:9090",
			[]string{"http://prometheus.monitoring:9090", "http://Prometheus.MONITORING:9090/", "http://prometheus.monitoring:09090/below"},
			[]string{
				"https://prometheus.monitoring:9090", "http://prometheus.monitoring", "http://prometheus.monitoring:9091",
				"http://prometheus.monitoring.:9090", "http://x.prometheus.monitoring:9090", "http://prometheus:9090",
				"http://prometheus.monitoring:9090@evil.example", "http://user@prometheus.monitoring:9090",
				"http://evil.example#http://prometheus.monitoring:9090", "http://prometheus.monitoring:9090?x",
				"http://prometheus.monitoring:9090/..", "http://prometheus.monitoring:9090/%2e%2e/x", `http://prometheus.monitoring:9090/\x`,
				"http://prometheus.monitoring:9090/a//b", "http://prometheus.monitoring:9090/./a", "ftp://prometheus.monitoring:9090", "",
				"http://prometheus.monitoring:99090", "http://prometheus.monitoring:0", "http:prometheus.monitoring:9090",
			},
		},
		"ports by default": {
			"http://a,https://b",
			[]string{"http://a:80", "http://a:", "https://b:443", "https://b"},
			[]string{"http://a:443", "https://b:80", "https://a", "http://b"},
		},
		"below": {
			"https://*.metrics.example.com",
			[]string{"https://eu.metrics.example.com", "https://a.b.METRICS.example.com:443/x"},
			[]string{
				"https://metrics.example.com", "https://.metrics.example.com", "https://a..metrics.example.com", "https://evilmetrics.example.com",
				"https://a.metrics.example.com.evil.test", "http://a.metrics.example.com", "https://a.metrics.example.com:8443",
				"https://evil.test/.metrics.example.com", `https://evil.test\.metrics.example.com`, "https://evil.test%2f.metrics.example.com",
				"https://evil.test%00.metrics.example.com", "https://ä.metrics.example.com", "https://*.metrics.example.com",
			},
		},
		"numbers are no names": {"http://*.0.0.1", nil, []string{"http://127.0.0.1", "http://0.0.1"}},
		"path": {
			"https://mimir.example/prometheus/",
			[]string{"https://mimir.example/prometheus", "https://mimir.example/prometheus/", "https://mimir.example/prometheus/tenant"},
			[]string{
				"https://mimir.example", "https://mimir.example/", "https://mimir.example/prometheus2", "https://mimir.example/Prometheus",
				"https://mimir.example/prometheus/../admin", "https://mimir.example/prometheus/%2e%2e/admin", "https://mimir.example/prometheus%2f..",
				"https://mimir.example/prometheus/..", "https://mimir.example//prometheus", "https://mimir.example/x/prometheus",
			},
		},
		"IP addresses": {
			"http://10.0.0.1:9090, http://[FD00:0:0::1]:9090",
			[]string{"http://10.0.0.1:9090", "http://[fd00::1]:9090"},
			[]string{"http://10.0.0.01:9090", "http://[::ffff:10.0.0.1]:9090", "http://[fd00::1%25eth0]:9090", "http://[fd00::2]:9090", "http://[10.0.0.1]:9090"},
		},
		"any among others": {"http://a,*", []string{"http://b"}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := ParseAllowlist(tc.list)
			if err != nil {
				t.Fatal(err)
			}
			for _, address := range tc.allowed {
				if !list.allows(address) {
					t.Errorf("%q is refused", address)
				}
			}
			for _, address := range tc.refused {
				if list.allows(address) {
					t.Errorf("%q is allowed", address)
				}
			}
		})
	}
}

func TestWrongAllowlist(t *testing.T) {
	tests := map[string]struct{ list, message string }{
		"no scheme":      {"prometheus.monitoring:9090", `entry 1: "prometheus.monitoring:9090" is no http or https URL`},
		"other scheme":   {"http://a,ftp://b", `entry 2: "ftp://b" is no http or https URL`},
		"empty":          {"http://a,", `entry 2: "" is no http or https URL`},
		"star inside":    {"https://a.*.example.com", `entry 1: "https://a.*.example.com" has a host`},
		"two stars":      {"https://*.*.example.com", "has a host"},
		"star alone":     {"https://*", "has a host"},
		"star as suffix": {"https://metrics*.example.com", "has a host"},
		"star over IPs":  {"http://*.10.0.0.1", "before an IP address"},
		"star in path":   {"https://a/*", "has a path"},
		"star as port":   {"https://a:*", "is no http or https URL"},
		"dots":           {"https://a/b/../c", "has a path"},
		"escapes":        {"https://a/%70rometheus", "has a path"},
		"query":          {"https://a?b=c", "query or fragment"},
		"password":       {"https://user:s3cr3t@a", "entry 1: must not hold a user name or password"},
		"port":           {"https://a:99999", "has a port"},
		"blank":          {"https://a b", "is no http or https URL"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := ParseAllowlist(tc.list)
			if err == nil || !strings.Contains(err.Error(), tc.message) || !strings.Contains(err.Error(), "write one such as") {
				t.Fatalf("%v, want %q", err, tc.message)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error repeats a password: %v", err)
			}
			if len(list.entries) != 0 {
				t.Errorf("and yet there is a list: %+v", list)
			}
		})
	}
}

func TestAddressesOffTheListAreNotAsked(t *testing.T) {
	asked := newMetricsServer(t, traffic(120, 0))
	other := newMetricsServer(t, traffic(120, 0))
	tests := map[string]struct {
		list, address string
		allowed       bool
	}{
		"off the list":            {"http://prometheus.monitoring:9090", other.URL, false},
		"on the list":             {other.URL, other.URL, true},
		"the controller's own":    {"", "", true},
		"the same, named":         {"", asked.URL + "/", true},
		"below the same":          {"", asked.URL + "/below", false},
		"off the list, with path": {other.URL + "/prometheus", other.URL + "/prometheus/%2e%2e", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			list, err := ParseAllowlist(tc.list)
			if err != nil {
				t.Fatal(err)
			}
			f := newFixture(t, asked.URL, func(c *Config) { c.Allow = list })
			web := target("web", func(t *Target) { t.Health.Prometheus = &v1alpha1.Prometheus{Address: tc.address} })
			p := f.Problem(web.Health)
			f.Track(web)
			v := f.Verdict(key("web"))
			asked.take()
			other.take()
			f.step(timeToVerdict)
			requests := len(asked.take()) + len(other.take())
			if tc.allowed {
				if p != nil || requests == 0 {
					t.Errorf("%+v, %d requests", p, requests)
				}
				return
			}
			host := strings.TrimPrefix(other.URL, "http://")
			if tc.address != "" && strings.HasPrefix(tc.address, asked.URL) {
				host = strings.TrimPrefix(asked.URL, "http://")
			}
			if p == nil || p.Reason != v1alpha1.ReasonMetricsAddressNotAllowed || !strings.Contains(p.Message, host) || !strings.Contains(p.Message, "--metrics-address-allow") {
				t.Errorf("%+v", p)
			}
			if v.State != v1alpha1.VerdictUnknown || v.Reason != v1alpha1.ReasonMetricsAddressNotAllowed || requests != 0 {
				t.Errorf("%+v, %d requests", v, requests)
			}
		})
	}
}

// TestRedirectsAreNotFollowed: neither a query nor a credential goes where only a
// server says so.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := newMetricsServer(t, traffic(120, 0))
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		s := newMetricsServer(t, text(status, "", "Location", elsewhere.URL+"/api/v1/query_range"))
		f := newFixture(t, s.URL, func(c *Config) { c.Secrets = newVault("shop/metrics", "token", "s3cr3t") })
		f.Track(target("web", withPrometheus(v1alpha1.Prometheus{BearerToken: ref("metrics", "token")})))
		f.step(timeToVerdict)
		if v := f.Verdict(key("web")); v.Reason != v1alpha1.ReasonProviderError || len(s.take()) == 0 {
			t.Errorf("%d: %+v", status, v)
		}
	}
	if n := len(elsewhere.take()); n != 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

// FuzzAllowlist compares what the list allows with the URL that would be asked.
func FuzzAllowlist(f *testing.F) {
	for _, entry := range []string{"https://*.example.com/prometheus", "http://prometheus.monitoring:9090", "http://[::1]:1", "*", "", "http://10.0.0.1"} {
		for _, address := range []string{"https://a.example.com/prometheus/../x", "https://a@b.example.com", "http://prometheus.monitoring:9090/%2e", "http://[::1%25a]:1", `http://a\b`, "http://10.0.0.1:080"} {
			f.Add(entry, address)
		}
	}
	f.Fuzz(func(t *testing.T, entry, address string) {
		list, err := ParseAllowlist(entry)
		if err != nil || !list.restricted || strings.Contains(entry, ",") || !list.allows(address) {
			return
		}
		base, err := url.Parse(address)
		if err != nil {
			t.Fatalf("%q is allowed and cannot be asked: %v", address, err)
		}
		at := (&client{base: base}).url("/api/v1/query")
		asked, err := url.Parse(at.String())
		if err != nil {
			t.Fatalf("%q is allowed and asked at no URL: %v", address, err)
		}
		entry = strings.TrimSpace(entry)
		want, err := url.Parse(strings.Replace(entry, "://*.", "://", 1))
		if err != nil {
			t.Fatalf("%q is an entry and no URL: %v", entry, err)
		}
		if asked.Scheme != want.Scheme || asked.User != nil || asked.RawQuery != "" {
			t.Errorf("%q allows %s", entry, asked)
		}
		host := strings.ToLower(asked.Hostname())
		if below := strings.Contains(entry, "://*."); below && !strings.HasSuffix(host, "."+strings.ToLower(want.Hostname())) {
			t.Errorf("%q allows %s", entry, asked)
		} else if !below && !strings.Contains(host, ":") && host != strings.ToLower(want.Hostname()) {
			t.Errorf("%q allows %s", entry, asked)
		}
		if !strings.HasPrefix(asked.Path, strings.TrimSuffix(want.Path, "/")+"/") {
			t.Errorf("%q allows the path %s", entry, asked.Path)
		}
	})
}
