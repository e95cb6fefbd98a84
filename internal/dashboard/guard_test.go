package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const order = `{"rollout":"shop/checkout","verb":"abort","stand":{"uid":"uid-1","revision":"2.4.1","attempt":3,"stage":1}}`

// TestGuard: whoever is not the user's own page gets nothing, and does nothing.
func TestGuard(t *testing.T) {
	given := &orders{}
	s := open(t, newCluster(checkout(t)), given)
	_, port, _ := strings.Cut(s.host, ":")
	eventually(t, "the rollouts are read", func() bool {
		return s.do(http.MethodPost, "/api/order", strings.Replace(order, "abort", "nothing", 1), map[string]string{"Content-Type": "application/json"}).status == http.StatusBadRequest
	})
	for name, test := range map[string]struct {
		method, path, body string
		headers            map[string]string
		want               int
	}{
		"another host":               {"GET", "/", "", map[string]string{"Host": "evil.example:" + port}, http.StatusMisdirectedRequest},
		"another host, with a token": {"POST", "/api/session", `{"token":"` + s.token + `"}`, map[string]string{"Host": "evil.example:" + port}, http.StatusMisdirectedRequest},
		"another port":               {"GET", "/", "", map[string]string{"Host": "127.0.0.1:1"}, http.StatusMisdirectedRequest},
		"no port":                    {"GET", "/", "", map[string]string{"Host": "127.0.0.1"}, http.StatusMisdirectedRequest},
		"an address that is no loopback": {
			"GET", "/", "", map[string]string{"Host": "10.0.0.1:" + port}, http.StatusMisdirectedRequest,
		},
		"the name localhost":           {"GET", "/", "", map[string]string{"Host": "localhost:" + port}, http.StatusOK},
		"the page needs no token":      {"GET", "/", "", map[string]string{"Cookie": ""}, http.StatusOK},
		"the page, from a link":        {"GET", "/", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusOK},
		"stream without a cookie":      {"GET", "/api/stream", "", map[string]string{"Cookie": ""}, http.StatusUnauthorized},
		"stream with another cookie":   {"GET", "/api/stream", "", map[string]string{"Cookie": s.cookie + "x"}, http.StatusUnauthorized},
		"stream of another site":       {"GET", "/api/stream", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"stream of another port":       {"GET", "/api/stream", "", map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		"order without a cookie":       {"POST", "/api/order", order, map[string]string{"Cookie": ""}, http.StatusUnauthorized},
		"order of another site":        {"POST", "/api/order", order, map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"order of another port":        {"POST", "/api/order", order, map[string]string{"Sec-Fetch-Site": "same-site"}, http.StatusForbidden},
		"order of an old browser":      {"POST", "/api/order", order, map[string]string{"Origin": "http://evil.example"}, http.StatusForbidden},
		"order of another port's page": {"POST", "/api/order", order, map[string]string{"Origin": "http://127.0.0.1:1"}, http.StatusForbidden},
		"order of a sandbox":           {"POST", "/api/order", order, map[string]string{"Origin": "null"}, http.StatusForbidden},
		"order of a form":              {"POST", "/api/order", order, map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
		"order without a type":         {"POST", "/api/order", order, nil, http.StatusUnsupportedMediaType},
		"order as a question":          {"GET", "/api/order", "", nil, http.StatusNotFound},
		"order by another method":      {"PUT", "/api/order", order, map[string]string{"Content-Type": "application/json"}, http.StatusMethodNotAllowed},
		"stream by another method":     {"POST", "/api/stream", "", map[string]string{"Content-Type": "application/json"}, http.StatusMethodNotAllowed},
		"a preflight":                  {"OPTIONS", "/api/order", "", map[string]string{"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}, http.StatusMethodNotAllowed},
		"too long a body":              {"POST", "/api/order", `{"rollout":"` + strings.Repeat("x", 9<<10) + `"}`, map[string]string{"Content-Type": "application/json"}, http.StatusBadRequest},
		"no JSON":                      {"POST", "/api/order", "{", map[string]string{"Content-Type": "application/json"}, http.StatusBadRequest},
		"an unknown field":             {"POST", "/api/order", `{"patch":{}}`, map[string]string{"Content-Type": "application/json"}, http.StatusBadRequest},
		"a wrong token":                {"POST", "/api/session", `{"token":"x"}`, map[string]string{"Content-Type": "application/json", "Cookie": ""}, http.StatusUnauthorized},
		"no token":                     {"POST", "/api/session", `{"token":""}`, map[string]string{"Content-Type": "application/json", "Cookie": ""}, http.StatusUnauthorized},
		"a token of another site":      {"POST", "/api/session", `{"token":"` + s.token + `"}`, map[string]string{"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}, http.StatusForbidden},
		"a cookie instead of a token":  {"POST", "/api/session", `{"token":""}`, map[string]string{"Content-Type": "application/json"}, http.StatusNoContent},
		"a file that is not the page":  {"GET", "/page.go", "", nil, http.StatusNotFound},
		"a way out of the page":        {"GET", "/..%2fpage.go", "", nil, http.StatusNotFound},
		"a folder":                     {"GET", "/page", "", nil, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.do(test.method, test.path, test.body, test.headers)
			if got.status != test.want {
				t.Errorf("%d %s, want %d", got.status, got.body, test.want)
			}
			for header := range got.header {
				if strings.HasPrefix(header, "Access-Control-") {
					t.Errorf("it has the header %s", header)
				}
			}
		})
	}
	if got := given.all(); len(got) != 0 {
		t.Errorf("orders were given: %v", got)
	}
}

// TestHeaders: every answer forbids what the page does not need.
func TestHeaders(t *testing.T) {
	s := open(t, newCluster(), nil)
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
		"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	}
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/main.js": "text/javascript; charset=utf-8", "/style.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml",
		"/api/order": "application/json", "/nothing": "application/json",
	} {
		got := s.do(http.MethodGet, path, "", nil)
		has := map[string]string{}
		for name := range want {
			has[name] = got.header.Get(name)
		}
		if diff := cmp.Diff(want, has); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
		if is := got.header.Get("Content-Type"); is != kind {
			t.Errorf("%s is %q, want %q", path, is, kind)
		}
	}
}

// TestCookie: it is of this port, and kept from scripts and other sites.
func TestCookie(t *testing.T) {
	s := open(t, newCluster(), nil)
	got := s.do(http.MethodPost, "/api/session", `{"token":"`+s.token+`"}`, map[string]string{"Content-Type": "application/json"}).header.Get("Set-Cookie")
	_, port, _ := strings.Cut(s.host, ":")
	for _, want := range []string{"weightedrollout-" + port + "=", "HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(got, want) {
			t.Errorf("the cookie %q lacks %q", got, want)
		}
	}
	if strings.Contains(got, s.token) {
		t.Error("the cookie has the token in it")
	}
}

// TestOneTimeAddress: it opens the page once.
func TestOneTimeAddress(t *testing.T) {
	s := open(t, newCluster(), nil)
	_, ticket, _ := strings.Cut(s.server.OneTimeAddress(), "#token=")
	for _, want := range []int{http.StatusNoContent, http.StatusUnauthorized} {
		got := s.do(http.MethodPost, "/api/session", `{"token":"`+ticket+`"}`, map[string]string{"Content-Type": "application/json", "Cookie": ""})
		if got.status != want {
			t.Errorf("%d %s, want %d", got.status, got.body, want)
		}
	}
}
