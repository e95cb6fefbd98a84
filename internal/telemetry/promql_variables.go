package telemetry

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"

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
	var out strings.Builder
	var at position
	last := 0
	for _, v := range variable.FindAllStringIndex(query, -1) {
		at.pass(query[last:v[0]])
		out.WriteString(query[last:v[0]])
		name := query[v[0]:v[1]]
		value := values[strings.Trim(name, "{}")]
		if !plainName.MatchString(value) && unfilled == "" {
			unfilled = name
		}
		out.WriteString(at.quoted(value))
		last = v[1]
	}
	out.WriteString(query[last:])
	filled := out.String()
	switch {
	case unfilled != "":
		return "", &health.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "the query uses the variable " + shorten(unfilled, 80) + ", which has no usable value: only {{namespace}}, {{service}}, {{route}} and {{window}} can be used, written exactly so"}
	case strings.Contains(filled, "{{"):
		return "", &health.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: `the query has an opening {{ that belongs to no variable: within a string, write it as \x7b\x7b`}
	}
	return filled, nil
}

// position is where in a query something is.
type position struct {
	quote   rune   // what the string around it ends with; 0: there is none
	escaped bool   // by a backslash in a string
	comment bool   // up to the end of the line
	before  string // the word or the operator before
	calls   []call // that have not ended
	text    []rune // of the string so far
}

// call is something in brackets.
type call struct {
	function  string
	arguments int // that have ended
}

// pass goes on to the end of a text.
func (p *position) pass(text string) {
	for _, c := range text {
		switch {
		case p.comment:
			p.comment = c != '\n'
		case p.quote != 0:
			p.inString(c)
		case c == '#':
			p.comment = true
		case c == '"' || c == '\'' || c == '`':
			p.quote, p.text = c, nil
		case !unicode.IsSpace(c):
			p.outside(c)
		}
	}
}

func (p *position) inString(c rune) {
	switch {
	case p.escaped:
		p.escaped = false
	case c == p.quote:
		p.quote, p.before = 0, ""
		return
	default:
		p.escaped = c == '\\' && p.quote != '`'
	}
	p.text = append(p.text, c)
}

func (p *position) outside(c rune) {
	last := len(p.calls) - 1
	switch {
	case strings.ContainsRune("({[", c):
		p.calls = append(p.calls, call{function: p.before})
		p.before = ""
	case last >= 0 && strings.ContainsRune(")}]", c):
		p.calls, p.before = p.calls[:last], ""
	case last >= 0 && c == ',':
		p.calls[last].arguments++
		p.before = ""
	case inWord(c) != inWord([]rune(p.before + "=")[0]):
		p.before = string(c)
	default:
		p.before += string(c)
	}
}

// inWord reports whether a character belongs to a word, and not to an operator.
func inWord(c rune) bool { return c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c) }

// regexp reports whether the string around is a regular expression.
func (p *position) regexp() bool {
	if p.quote == 0 {
		return false
	}
	last := len(p.calls) - 1
	return p.before == "=~" || p.before == "!~" || last >= 0 && p.calls[last] == call{"label_replace", 4}
}

// quoted returns a value as it must be written here: in a regular expression so that it matches itself alone, with the escapes of the string
// around that. Between \Q and \E the user has seen to that.
func (p *position) quoted(value string) string {
	text := string(p.text)
	if !p.regexp() || strings.LastIndex(text, `\Q`) > strings.LastIndex(text, `\E`) {
		return value
	}
	value = regexp.QuoteMeta(value)
	if p.quote != '`' {
		value = strings.ReplaceAll(value, `\`, `\\`)
	}
	return value
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
