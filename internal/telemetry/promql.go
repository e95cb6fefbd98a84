package telemetry

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// The label that tells the time of the newest sample from the counts, which come
// in one reply.
const (
	kindLabel  = "wr_kind"
	kindNewest = "newest"
)

// requestsQuery asks for the increase of every backend's requests by status over
// the window, and for the time of its newest sample. increase looks at nothing
// outside the window, so that no request from before the share was confirmed can
// get into the evidence.
func (p preset) requestsQuery(backends []string, window time.Duration) string {
	selector := p.requests + p.matcher(backends)
	return fmt.Sprintf(`sum by (%s, %s) (increase(%s[%s])) or label_replace(max by (%s) (timestamp(%s)), "%s", "%s", "", "")`,
		p.track, p.code, selector, milliseconds(window), p.track, selector, kindLabel, kindNewest)
}

// bucketsQuery asks for the increase of every backend's buckets over the window.
func (p preset) bucketsQuery(backends []string, window time.Duration) string {
	return fmt.Sprintf(`sum by (%s, %s) (increase(%s[%s]))`,
		p.track, p.bound, p.buckets+p.matcher(backends), milliseconds(window))
}

// matcher selects the backends. Each is quoted for the regular expression, and the
// whole for PromQL, whose double-quoted strings follow Go's rules.
func (p preset) matcher(backends []string) string {
	quoted := make([]string, len(backends))
	for i, b := range backends {
		quoted[i] = regexp.QuoteMeta(b)
	}
	return "{" + p.track + "=~" + strconv.Quote(strings.Join(quoted, "|")) + "}"
}

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}

// plainName is what a value may hold that is put into a query: the characters of
// DNS names and of durations, none of which means anything to PromQL.
var plainName = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// variable is anything in double braces.
var variable = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// fill puts the values into a query of the spec. It fails, naming the variable, if
// one is left over or has no value: such a query would ask for something else.
func fill(query string, values map[string]string) (string, *health.Problem) {
	var unfilled string
	filled := variable.ReplaceAllStringFunc(query, func(v string) string {
		value := values[strings.Trim(v, "{}")]
		if !plainName.MatchString(value) && unfilled == "" {
			unfilled = v
		}
		return value
	})
	switch {
	case unfilled != "":
		return "", &health.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "the query uses the variable " + shorten(unfilled, 80) + ", which has no usable value: only {{namespace}}, {{service}}, {{route}} and {{window}} can be used, written exactly so"}
	case strings.Contains(filled, "{{"):
		return "", &health.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "the query has an opening {{ that belongs to no variable"}
	}
	return filled, nil
}

// checkQueries returns the filled-in queries of a target's own checks.
func checkQueries(t Target, c health.Config) []checkQuery {
	subject := t.Canary
	if t.Subject == health.TrackStable {
		subject = t.Stable
	}
	values := map[string]string{
		"namespace": t.Key.Namespace,
		"service":   subject.Service,
		"route":     t.Route,
		"window":    model.Duration(c.Window).String(),
	}
	queries := make([]checkQuery, len(t.Health.Checks))
	for i, k := range t.Health.Checks {
		queries[i].name = k.Name
		queries[i].text, queries[i].problem = fill(k.Query, values)
	}
	return queries
}

// shorten cuts a text from a user to what a message can bear.
func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return strings.ToValidUTF8(s, "?")
}
