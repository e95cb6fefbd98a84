package telemetry

import (
	"fmt"
	"regexp"
	"time"

	"github.com/prometheus/common/model"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

var (
	// stringLiteral is a string of PromQL, in which nothing is a range.
	stringLiteral = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`")
	comment       = regexp.MustCompile(`#[^\n]*`)
	rangeText     = regexp.MustCompile(`\[\s*([0-9][0-9a-z]*)\s*(:[^\]]*)?\]`)
	offsetText    = regexp.MustCompile(`(?i)\boffset\s+([0-9][0-9a-z]*)`)
)

// reachOf is how far back a query looks, as far as its text says: the longest range and
// the longest offset; where it has subqueries, whose ranges come on top of those within
// them, all ranges together. It is rather too long than too short.
func reachOf(query string) time.Duration {
	query = comment.ReplaceAllString(stringLiteral.ReplaceAllString(query, `""`), "")
	var longest, sum, offset time.Duration
	nested := false
	for _, m := range rangeText.FindAllStringSubmatch(query, -1) {
		d := durationOf(m[1])
		longest, sum, nested = max(longest, d), sum+d, nested || m[2] != ""
	}
	for _, m := range offsetText.FindAllStringSubmatch(query, -1) {
		offset = max(offset, durationOf(m[1]))
	}
	if nested {
		return sum + offset
	}
	return longest + offset
}

// durationOf reads a duration of PromQL; 0 of a text that is none.
func durationOf(text string) time.Duration {
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0
	}
	return time.Duration(d)
}

// tooEarly says that a check's query still looks back to before the share was confirmed:
// what it gives then says something about another share.
func (e *entry) tooEarly(q *checkQuery, tick time.Time) *health.Problem {
	from := e.target.ConfirmedAt.Add(e.config.SampleDelay)
	if q.reach <= e.config.Window || !tick.Add(-q.reach).Before(from) {
		return nil
	}
	return &health.Problem{Reason: v1alpha1.ReasonAwaitingWindow, Message: fmt.Sprintf("the query looks back %s, and the share was not confirmed for so long: use [{{window}}] to wait less", q.reach)}
}
