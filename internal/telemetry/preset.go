package telemetry

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// preset says how a gateway's request metrics are read.
type preset struct {
	// requests is a counter of requests, and buckets the buckets of a classic
	// histogram of response times in seconds.
	requests, buckets string
	// track is the label that tells the backends apart, code the one with the
	// response's status, and bound the one with the bucket's upper bound.
	track, code, bound string
	// backend returns the value of the track label for a backend.
	backend func(namespace string, t v1alpha1.Track) string
	// classify says whether a status counts as failed. It is not known for a status
	// that the preset cannot judge.
	classify func(code string) (failed, known bool)
	// hint says what the gateway must be told, for messages.
	hint string
}

// presets are the gateways whose metrics are known.
var presets = map[v1alpha1.Preset]preset{
	v1alpha1.PresetTraefik: {
		requests: "traefik_service_requests_total",
		buckets:  "traefik_service_request_duration_seconds_bucket",
		track:    "service",
		code:     "code",
		bound:    "le",
		backend:  traefikBackend,
		classify: httpStatus,
		hint:     "Traefik needs --metrics.prometheus.addserviceslabels=true",
	},
}

// traefikBackend returns the name that Traefik's Gateway provider (v3) gives to a
// backend of an HTTPRoute. It is the same with and without native load balancing.
// Traefik joins the parts by '-' and turns every other character into one, so two
// Services in different namespaces can have the same name (a/b-c and a-b/c); they
// then share their metrics, and in Traefik itself their endpoints.
func traefikBackend(namespace string, t v1alpha1.Track) string {
	parts := strings.FieldsFunc(namespace+"-"+t.Service+"-http-"+strconv.Itoa(int(t.Port)), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
	return strings.Join(parts, "-") + "@kubernetesgateway"
}

// httpStatus judges an HTTP status: those of 500 and above failed. Traefik reports
// gRPC requests by their gRPC status, 0 to 16, which says nothing in HTTP's terms.
func httpStatus(code string) (failed, known bool) {
	if len(code) != 3 {
		return false, false
	}
	n, err := strconv.ParseUint(code, 10, 16)
	return n >= 500, err == nil && n >= 100 && n < 600
}
