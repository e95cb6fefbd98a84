package live

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/internal/health"
)

// Prefix is the path below which evidence is served: Prefix + namespace + "/" + name.
const Prefix = "/evidence/"

// UIDHeader carries the metadata.uid of the rollout whose evidence is asked for, from
// those who cannot send a token: the API server's proxy of Services takes tokens away.
// Whoever may read the rollout knows its uid, and nobody can guess it.
const UIDHeader = "X-WeightedRollout-UID"

// patience bounds how long a uid is looked up: the cache may still be filling.
const patience = 5 * time.Second

type key = types.NamespacedName

// Evidence is what is known of a rollout.
type Evidence struct {
	Report health.Report
	// Attempt, Subject and ConfirmedAt say what it is about.
	Attempt     int64
	Subject     health.Track
	ConfirmedAt time.Time
}

// Source is where evidence comes from.
type Source interface {
	// Evidence returns what is known of a rollout at a time, or false if nothing is
	// gathered about it.
	Evidence(k types.NamespacedName, now time.Time) (Evidence, bool)
}

// Handler serves the evidence of rollouts as JSON. A request for which ByUID is true gets
// it if the uid is that of the rollout. All others are for the server that the handler is
// part of: it must have authenticated them.
type Handler struct {
	// Source is where evidence comes from.
	Source Source
	// Leading says whether this is the replica that gathers evidence; nil: it is.
	Leading func() bool
	// UID returns the uid of a rollout, without asking the API server; nil: nobody is
	// served for knowing it.
	UID func(ctx context.Context, k types.NamespacedName) (types.UID, error)
	// Now is the clock.
	Now func() time.Time
}

// ByUID tells whether a request has to be judged by the uid that it carries: it is below
// Prefix, and has no token. It may go round a server's authentication, since the Handler
// compares the uid.
func ByUID(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, Prefix) && r.Header.Get(UIDHeader) != "" && len(r.Header.Values("Authorization")) == 0
}

// name is what the parts of an object's key look like.
var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// ServeHTTP answers GET and HEAD of the path of a rollout.
func (h *Handler) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		rw.Header().Set("Allow", "GET, HEAD")
		refuse(rw, http.StatusMethodNotAllowed, "evidence can only be read: use GET")
		return
	}
	namespace, rest, found := strings.Cut(strings.TrimPrefix(r.URL.Path, Prefix), "/")
	if !found || !name.MatchString(namespace) || !name.MatchString(rest) {
		refuse(rw, http.StatusNotFound, "the path must be "+Prefix+"NAMESPACE/NAME of a WeightedRollout")
		return
	}
	if h.Leading != nil && !h.Leading() {
		refuse(rw, http.StatusServiceUnavailable, "this replica of the controller is not the one that works: ask the holder of the lease")
		return
	}
	k := key{Namespace: namespace, Name: rest}
	if ByUID(r) && !h.knows(rw, r, k) {
		return
	}
	now := h.Now()
	e, ok := h.Source.Evidence(k, now)
	if !ok {
		refuse(rw, http.StatusNotFound, "no evidence is gathered about a WeightedRollout "+k.String()+": there is none, or it gives way to an older one")
		return
	}
	write(rw, http.StatusOK, document(k, e, now))
}

// knows tells whether a request carries the uid of the rollout. If not, it has been
// answered. One that does not exist is refused like one with another uid, so that nothing
// is told about it.
func (h *Handler) knows(rw http.ResponseWriter, r *http.Request, k key) bool {
	const message = "the uid in " + UIDHeader + " is not that of this WeightedRollout: read the object again, or send a token"
	if h.UID == nil {
		refuse(rw, http.StatusForbidden, message)
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	uid, err := h.UID(ctx, k)
	switch {
	case ctx.Err() != nil:
		refuse(rw, http.StatusServiceUnavailable, "the controller is still reading the cluster: ask again")
		return false
	case err != nil || uid == "" || !same(string(uid), r.Header.Get(UIDHeader)):
		refuse(rw, http.StatusForbidden, message)
		return false
	}
	return true
}

// same compares two texts in a time that tells nothing of either.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

func refuse(rw http.ResponseWriter, code int, message string) {
	write(rw, code, struct {
		Error string `json:"error"`
	}{message})
}

func write(rw http.ResponseWriter, code int, body any) {
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil {
		// Every number is finite, so that this cannot be; but nothing is made up.
		code, text = http.StatusInternalServerError, []byte(`{"error": "the evidence cannot be written down"}`)
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.Header().Set("Cache-Control", "no-store")
	rw.Header().Set("X-Content-Type-Options", "nosniff")
	rw.WriteHeader(code)
	_, _ = rw.Write(append(text, '\n'))
}
