package telemetry

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// preset says how the request metrics of a gateway, a mesh or a service itself are
// read. It is data: another source of metrics is another value.
type preset struct {
	// names says how a series names the Service that a request went to.
	names naming
	// families are the metrics that are read.
	families []family
	// alternatives says that the families count the same requests, so that only the
	// first that a backend has is read. Otherwise all of them are added up.
	alternatives bool
	// hint says what must be set up for the metrics to be there, for messages.
	hint string
}

// naming says which labels name a Service. Either joined is set, or namespace and
// service are.
type naming struct {
	// namespace, service and port are labels; without a port the metrics do not tell
	// the ports of a Service apart.
	namespace, service, port string
	// joined is a label with one name for all of it, and join gives the names that a
	// Service has there: one for each kind of route that it can be a backend of.
	joined string
	join   func(namespace string, t v1alpha1.Track) []string
}

// family is a counter of requests and a classic histogram of their response times.
type family struct {
	// requests and buckets are the names of the metrics.
	requests, buckets string
	// only are matchers that every series must meet, such as reporter="source".
	only string
	// status are the labels that say how a request ended, and judge reads them: whether
	// such a request counts as failed, and whether that can be told at all.
	status []string
	judge  func(labels map[string]string) (failed, known bool)
	// bound is the label with a bucket's upper bound, and unit is its unit in seconds.
	bound string
	unit  float64
}

// presets are the sources of metrics that are known.
var presets = map[v1alpha1.Preset]preset{
	v1alpha1.PresetTraefik: traefik,
	v1alpha1.PresetIstio:   istio,
	v1alpha1.PresetLinkerd: linkerd,
	v1alpha1.PresetPods:    pods,
}

// backend returns the preset's name for a backend, which is in the given namespace if
// it names none. Two backends that the metrics cannot tell apart have the same one.
func (p preset) backend(namespace string, t v1alpha1.Track) string {
	namespace = cmp.Or(t.Namespace, namespace)
	if p.names.joined != "" {
		return strings.Join(p.names.join(namespace, t), "|")
	}
	name := namespace + "/" + t.Service
	if p.names.port != "" {
		name += ":" + strconv.Itoa(int(t.Port))
	}
	return name
}

// aliases returns what owner can return for the series of a backend.
func (p preset) aliases(backend string) []string {
	if p.names.joined != "" {
		return strings.Split(backend, "|")
	}
	return []string{backend}
}

// owner returns which backend a series belongs to.
func (p preset) owner(labels map[string]string) string {
	if p.names.joined != "" {
		return labels[p.names.joined]
	}
	name := labels[p.names.namespace] + "/" + labels[p.names.service]
	if p.names.port != "" {
		name += ":" + labels[p.names.port]
	}
	return name
}

// by returns the labels that owner reads.
func (n naming) by() []string {
	if n.joined != "" {
		return []string{n.joined}
	}
	labels := []string{n.namespace, n.service}
	if n.port != "" {
		labels = append(labels, n.port)
	}
	return labels
}

// matchers select the series of the backends. Where several labels name a backend,
// each is matched by itself, which selects some others as well: what they give is
// told apart by its labels.
func (p preset) matchers(backends []string) string {
	values := map[string]map[string]bool{}
	note := func(label, value string) {
		if values[label] == nil {
			values[label] = map[string]bool{}
		}
		values[label][value] = true
	}
	for _, b := range backends {
		if p.names.joined != "" {
			for _, name := range p.aliases(b) {
				note(p.names.joined, name)
			}
			continue
		}
		namespace, rest, _ := strings.Cut(b, "/")
		service, port, _ := strings.Cut(rest, ":")
		note(p.names.namespace, namespace)
		note(p.names.service, service)
		if p.names.port != "" {
			note(p.names.port, port)
		}
	}
	var all []string
	for _, label := range p.names.by() {
		all = append(all, label+"=~"+oneOf(slices.Sorted(maps.Keys(values[label]))))
	}
	return strings.Join(all, ", ")
}

// oneOf returns a PromQL string with a regular expression of the texts. Each is
// quoted for the expression, and the whole for PromQL, whose double-quoted strings
// follow Go's rules.
func oneOf(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = regexp.QuoteMeta(t)
	}
	return strconv.Quote(strings.Join(quoted, "|"))
}
