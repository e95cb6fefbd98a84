package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// policy lets a page load and run what this server serves, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// ticketLife is how long a ticket is good for.
const ticketLife = time.Minute

// guard keeps everybody out but the user's own browser, on the server's own page.
type guard struct {
	port int
	// token is the secret in the address of the page, and session the one in the cookie.
	token, session string
	origins        *http.CrossOriginProtection
	now            func() time.Time

	mu sync.Mutex
	// ticket stands for the token once, and until it expires.
	ticket  string
	expires time.Time
}

func newGuard(port int, now func() time.Time) *guard {
	return &guard{port: port, token: rand.Text(), session: rand.Text(), origins: http.NewCrossOriginProtection(), now: now}
}

// issue makes a secret that opens the page once. It may become known: a program that
// opens an address shows it to everybody on the machine.
func (g *guard) issue() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ticket, g.expires = rand.Text(), g.now().Add(ticketLife)
	return g.ticket
}

// admits tells whether a secret opens the page.
func (g *guard) admits(secret string) bool {
	if same(secret, g.token) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ticket == "" || !same(secret, g.ticket) {
		return false
	}
	g.ticket = ""
	return g.now().Before(g.expires)
}

// same compares two secrets in a time that tells nothing of them.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// cookieName is of the port: cookies are shared by all ports of a host.
func (g *guard) cookieName() string { return "weightedrollout-" + strconv.Itoa(g.port) }

// letIn gives the browser the cookie that opens the rest.
func (g *guard) letIn(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure would keep it from a page on loopback without TLS
		Name: g.cookieName(), Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

func (g *guard) isIn(r *http.Request) bool {
	return slices.ContainsFunc(r.CookiesNamed(g.cookieName()), func(c *http.Cookie) bool { return same(c.Value, g.session) })
}

// hosts are the names under which the page may be asked for. Any other is another site
// whose name leads here.
func (g *guard) hosts() []string {
	port := strconv.Itoa(g.port)
	return []string{net.JoinHostPort("127.0.0.1", port), net.JoinHostPort("localhost", port)}
}

// protect wraps everything that is served.
func (g *guard) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		if !slices.Contains(g.hosts(), r.Host) {
			refuse(w, http.StatusMisdirectedRequest, fmt.Sprintf("this page is at %s only", g.hosts()[0]))
			return
		}
		if err := g.origins.Check(r); err != nil {
			refuse(w, http.StatusForbidden, "the request comes from another site")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// api guards what only the page itself may ask for.
func (g *guard) api(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !ownPage(r):
			refuse(w, http.StatusForbidden, "the request comes from another site")
		case !g.isIn(r):
			refuse(w, http.StatusUnauthorized, "open the address that the command has printed")
		default:
			next(w, r)
		}
	}
}

// ownPage tells whether a browser says that its own page asks, or nothing about it, as
// other programs do.
func ownPage(r *http.Request) bool {
	return slices.Contains([]string{"", "same-origin", "none"}, r.Header.Get("Sec-Fetch-Site"))
}

// jsonOnly refuses what a form of another site could send.
func jsonOnly(w http.ResponseWriter, r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body has to be application/json")
		return false
	}
	return true
}
