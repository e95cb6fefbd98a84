package telemetry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Labels that tell the parts of one reply apart.
const (
	// kindLabel is absent from counts.
	kindLabel  = "wr_kind"
	kindNewest = "newest" // the time of the newest sample
	kindOldest = "oldest" // the time of the oldest sample that the counts start from
	kindNative = "native" // there is a native histogram
	// familyLabel has the index of the family, but for the first.
	familyLabel = "wr_family"
)

// requestsQuery asks how many requests every backend had in the window, by status,
// and for the times of the samples that say so.
func (p preset) requestsQuery(backends []string, window time.Duration) string {
	return p.query(func(f family) string {
		s := p.selector(f.requests, f, backends)
		owner := labelList(p.names.by())
		parts := []string{
			"sum by (" + labelList(slices.Concat(p.names.by(), f.status)) + ") (" + increase(s, window) + ")",
			ofKind(kindNewest, "max by ("+owner+") (timestamp("+s+"))"),
			ofKind(kindOldest, "min by ("+owner+") (timestamp("+before(s, window)+") and last_over_time("+within(s, window)+"))"),
		}
		if native, ok := strings.CutSuffix(f.requests, "_count"); ok {
			parts = append(parts, p.native(native, f, backends))
		}
		return strings.Join(parts, " or ")
	})
}

// bucketsQuery asks how many requests were in every backend's buckets in the window.
func (p preset) bucketsQuery(backends []string, window time.Duration) string {
	return p.query(func(f family) string {
		s := p.selector(f.buckets, f, backends)
		return "sum by (" + labelList(append(p.names.by(), f.bound)) + ") (" + increase(s, window) + ") or " +
			p.native(strings.TrimSuffix(f.buckets, "_bucket"), f, backends)
	})
}

// query joins what is asked of every family into one query.
func (p preset) query(ask func(family) string) string {
	texts := make([]string, len(p.families))
	for i, f := range p.families {
		texts[i] = ask(f)
		if i > 0 {
			texts[i] = fmt.Sprintf(`label_replace(%s, "%s", "%d", "", "")`, texts[i], familyLabel, i)
		}
	}
	return strings.Join(texts, " or ")
}

// increase returns an expression for how much counters rose in the window, from the
// samples alone. PromQL's own function of that name estimates: it multiplies what it
// sees up to the window's ends, and misses the first value of a new series as well as
// what came between the last sample before the window and the first one in it. For
// every series it is the first of these that can be told:
//
//   - the last sample in the window less the last one before it. A value in the window
//     that is smaller by more than a tenth is a counter that started again. A smaller
//     step back is that between two copies of one counter, of which a server that
//     removes duplicates shows now one and now the other.
//   - the last sample itself, for a counter that started again, and for a new series
//     of a target that was scraped before the window and did not have it then.
//   - the last sample less the smallest, for a series of a new target: what it counted
//     before its first sample may have been before the window.
//
// None of them is more than there was, and over windows side by side they count no
// request twice.
func increase(selector string, window time.Duration) string {
	in, old := within(selector, window), before(selector, window)
	return fmt.Sprintf("clamp_min(last_over_time(%[1]s) - (%[2]s <= min_over_time(%[1]s) / 0.9), 0)"+
		" or (last_over_time(%[1]s) and on (job, instance) %[2]s)"+
		" or (last_over_time(%[1]s) - min_over_time(%[1]s))", in, old)
}

// native asks which backends have a native histogram, which is not read: its series
// have the name of the histogram itself.
func (p preset) native(name string, f family, backends []string) string {
	return ofKind(kindNative, "group by ("+labelList(p.names.by())+") ("+p.selector(name, f, backends)+")")
}

// selector selects the series of the backends.
func (p preset) selector(metric string, f family, backends []string) string {
	if f.only != "" {
		return metric + "{" + f.only + ", " + p.matchers(backends) + "}"
	}
	return metric + "{" + p.matchers(backends) + "}"
}

func within(selector string, window time.Duration) string {
	return selector + "[" + milliseconds(window) + "]"
}

func before(selector string, window time.Duration) string {
	return selector + " offset " + milliseconds(window)
}

func ofKind(kind, expression string) string {
	return fmt.Sprintf(`label_replace(%s, "%s", "%s", "", "")`, expression, kindLabel, kind)
}

func labelList(labels []string) string { return strings.Join(labels, ", ") }

func milliseconds(d time.Duration) string {
	return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
}
