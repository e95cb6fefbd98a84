package telemetry

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// plainName is what a value may hold that is put into a query: the characters of
// DNS names and of durations, none of which means anything to PromQL.
var plainName = regexp.MustCompile(`^[A-Za-z0-9.-]+$`)

// variable is anything in double braces.
var variable = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// fill puts the values into a query of the spec. It fails, naming the variable, if
// one is left over or has no value: such a query would ask for something else. Two
// opening braces that belong to no variable are written "\x7b\x7b", which PromQL's
// strings in double or single quotes read as such.
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
		return "", &health.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: `the query has an opening {{ that belongs to no variable: within a string, write it as \x7b\x7b`}
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
		"namespace": cmp.Or(subject.Namespace, t.Key.Namespace),
		"service":   subject.Service,
		"route":     t.Route,
		"window":    model.Duration(c.Window).String(),
	}
	queries := make([]checkQuery, len(t.Health.Checks))
	for i, k := range t.Health.Checks {
		queries[i].name = k.Name
		queries[i].text, queries[i].problem = fill(k.Query, values)
		queries[i].reach = reachOf(queries[i].text)
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
