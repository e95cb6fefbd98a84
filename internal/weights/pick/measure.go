package pick

import (
	"fmt"
	"iter"
)

// second is the length of the sliding second, in milliseconds.
const second = 1000

// Request is one request of a stream that Measure plays.
type Request struct {
	// At is when it comes, in milliseconds since the start of the stream, 0 or more.
	At int64
	// Key is whose request it is, from Key. Pickers that do not hash ignore it.
	Key uint64
}

// Measurement is what a picker did with a stream of requests.
type Measurement struct {
	// Served is the number of requests for which a backend was picked.
	Served int64
	// Unserved is the number of requests for which none could be picked.
	Unserved int64
	// Loads has one entry per backend, in their order.
	Loads []Load
}

// Load is one backend's part in a Measurement.
type Load struct {
	// Requests is the number of requests that it got.
	Requests int64
	// LongestRun is the largest number of requests in a row that it got.
	LongestRun int64
	// BusiestSecond is the largest number of requests that it got in any second. The
	// second slides: it is the 1000 ms up to and including any request's own, so that
	// requests at 0 and 999 share one and requests at 0 and 1000 do not.
	BusiestSecond int64
	// Exact is its exact share of the requests served: Served * weight / sum of the
	// weights. It need not be whole.
	Exact float64
	// Deviation is Requests - Exact: above 0 when it got too many.
	Deviation float64
	// LargestDeviation is the largest distance from the exact share, in requests and
	// without a sign, after any number of requests served.
	LargestDeviation float64
}

// Measure plays the requests against the picker and counts. The backends are those
// that the picker was made for; their weights give the exact shares.
//
// The time is a virtual clock: nothing waits. What Measure remembers is the requests
// of the last second, so it allocates only while the busiest second so far grows, and
// each request costs O(1) beside the pick.
//
// It fails on backends that no picker can use, on a request before 0 or before the
// one that precedes it, and on a picker that returns an index beyond the backends.
func Measure(p Picker, backends []Backend, requests iter.Seq[Request]) (Measurement, error) {
	sum, err := check(backends)
	if err != nil {
		return Measurement{}, err
	}
	m := newMeter(backends, sum)
	for r := range requests {
		if r.At < m.now {
			return Measurement{}, fmt.Errorf("a request at %d ms comes when the clock is at %d: count from 0 and sort by time", r.At, m.now)
		}
		m.now = r.At
		picked := p.Pick(r.Key)
		if picked >= len(backends) {
			return Measurement{}, fmt.Errorf("the picker chose backend %d of %d: pass the backends that it was made for", picked, len(backends))
		}
		m.count(picked)
	}
	return m.result(), nil
}

// meter holds the counts while requests are played.
type meter struct {
	Measurement
	shares []float64 // each backend's exact part of the whole

	now  int64 // of the latest request, in milliseconds
	last int   // the backend of the latest request, or -1
	run  int64 // how many in a row it got

	inSecond []int64 // per backend, requests of the sliding second
	recent   window
}

func newMeter(backends []Backend, sum int64) *meter {
	m := &meter{
		Measurement: Measurement{Loads: make([]Load, len(backends))},
		shares:      make([]float64, len(backends)),
		last:        -1,
		inSecond:    make([]int64, len(backends)),
	}
	for i, b := range backends {
		m.shares[i] = float64(b.Weight) / float64(sum)
	}
	return m
}

// count counts the latest request as picked, which is below 0 for none.
func (m *meter) count(picked int) {
	if picked != m.last {
		m.last, m.run = picked, 0
	}
	if picked < 0 {
		m.Unserved++
		return
	}
	for m.recent.length > 0 && m.now-m.recent.oldest().at >= second {
		m.inSecond[m.recent.oldest().backend]--
		m.recent.pop()
	}
	m.recent.push(visit{at: m.now, backend: picked})
	m.inSecond[picked]++
	m.run++

	// Between two of its requests a backend only falls behind, so its deviation is
	// largest just before or just after one, or at the end.
	m.deviates(picked)
	m.Served++
	m.Loads[picked].Requests++
	m.deviates(picked)

	l := &m.Loads[picked]
	l.LongestRun = max(l.LongestRun, m.run)
	l.BusiestSecond = max(l.BusiestSecond, m.inSecond[picked])
}

// deviates brings the backend's deviation up to date.
func (m *meter) deviates(i int) {
	l := &m.Loads[i]
	l.Exact = m.shares[i] * float64(m.Served)
	l.Deviation = float64(l.Requests) - l.Exact
	l.LargestDeviation = max(l.LargestDeviation, l.Deviation, -l.Deviation)
}

func (m *meter) result() Measurement {
	for i := range m.Loads {
		m.deviates(i)
	}
	return m.Measurement
}

// visit is a request that a backend got.
type visit struct {
	at      int64
	backend int
}

// window is a queue of visits, the oldest first, in a circular slice.
type window struct {
	visits []visit
	first  int
	length int
}

func (w *window) oldest() visit { return w.visits[w.first] }

func (w *window) pop() {
	w.first = (w.first + 1) % len(w.visits)
	w.length--
}

func (w *window) push(v visit) {
	if w.length == len(w.visits) {
		larger := make([]visit, max(64, 2*len(w.visits)))
		copied := copy(larger, w.visits[w.first:])
		copy(larger[copied:], w.visits[:w.first])
		w.visits, w.first = larger, 0
	}
	w.visits[(w.first+w.length)%len(w.visits)] = v
	w.length++
}
