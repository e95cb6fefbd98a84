package live

import (
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

// Handler serves the evidence of rollouts as JSON. It authenticates nobody: that is for
// the server that it is part of.
type Handler struct {
	// Source is where evidence comes from.
	Source Source
	// Leading says whether this is the replica that gathers evidence; nil: it is.
	Leading func() bool
	// Now is the clock.
	Now func() time.Time
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
	now := h.Now()
	k := key{Namespace: namespace, Name: rest}
	e, ok := h.Source.Evidence(k, now)
	if !ok {
		refuse(rw, http.StatusNotFound, "no evidence is gathered about a WeightedRollout "+k.String()+": there is none, or it gives way to an older one")
		return
	}
	write(rw, http.StatusOK, document(k, e, now))
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
