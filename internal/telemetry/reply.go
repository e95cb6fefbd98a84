package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// reply is an answer of the Prometheus HTTP API. It is decoded here and not by the
// official client, which reads a vector's sample that lacks its value as 0: for an
// error rate, a pass; and which holds all of it in memory before it looks at it.
type reply struct {
	*stream
	result func() error // reads the result

	status, errorType, resultType string
	remarks                       int
	partial                       bool // there are warnings
	oddResult                     bool
}

var (
	errNotPrometheus = errors.New("the reply is not one of the Prometheus API")
	errPartial       = errors.New("the reply is partial: it carries warnings")
)

// apiError is an error that the server reports in its reply.
type apiError struct{ class string }

func (e *apiError) Error() string { return "the query was refused: " + e.class }

// errorClasses are the API's own error types. Any other text is not passed on: it
// could be anything, even an echo of credentials.
var errorClasses = []string{"bad_data", "timeout", "canceled", "execution", "internal", "unavailable", "not_found", "not_acceptable"}

const (
	// maxRemarks is how many warnings and remarks are read.
	maxRemarks = 1000
	// maxElements is how many elements of a vector are counted.
	maxElements = 10_000
)

// The keys that are read. Their order is that of the cases where they are.
var (
	replyKeys   = []string{"status", "errorType", "warnings", "data"}
	dataKeys    = []string{"resultType", "result"}
	seriesKeys  = []string{"metric", "values", "histograms"}
	elementKeys = []string{"metric", "value", "histogram"}
)

// read decodes a reply.
func (r *reply) read() error {
	err := r.object(replyKeys, func(key int) error {
		switch key {
		case 0:
			return r.Decode(&r.status)
		case 1:
			return r.Decode(&r.errorType)
		case 2:
			return r.list(r.warning)
		}
		return r.object(dataKeys, r.data)
	})
	if err == nil {
		err = r.end()
	}
	switch {
	case err != nil:
		return r.failed(err)
	case r.odd:
		return errNotPrometheus
	}
	return r.judge()
}

// warning tells warnings from mere remarks. Prometheus before version 3 sends both in
// one list.
func (r *reply) warning() error {
	if r.remarks++; r.remarks > maxRemarks {
		return &sizeError{fmt.Sprintf("a reply of more than %d warnings", maxRemarks)}
	}
	var text string
	err := r.Decode(&text)
	r.partial = r.partial || !strings.HasPrefix(text, "PromQL info:")
	return err
}

func (r *reply) data(key int) error {
	if key == 0 {
		return r.Decode(&r.resultType)
	}
	before := r.odd
	err := r.result()
	r.odd, r.oddResult = before, r.odd
	return err
}

func (r *reply) judge() error {
	switch {
	case r.status == "error":
		class := "unknown error"
		if slices.Contains(errorClasses, r.errorType) {
			class = r.errorType
		}
		return &apiError{class: class}
	case r.status != "success":
		return errNotPrometheus
	case r.partial:
		return errPartial
	}
	return nil
}

// sample is a number at a time.
type sample struct {
	at    time.Time
	value float64
}

// decoded is what stands where a sample should.
type decoded struct {
	sample

	null bool
	odd  error // why it is no sample
}

// UnmarshalJSON does not fail, so that the rest of a reply is read whatever this is.
func (d *decoded) UnmarshalJSON(b []byte) error {
	*d = decoded{null: string(b) == "null"}
	d.odd = d.parse(b)
	return nil
}

var (
	errNoSample = errors.New(`a sample is not of the form [seconds, "value"]`)
	errNoTime   = errors.New("the time of a sample is no number")
	errNoValue  = errors.New("the value of a sample is no number")
)

// parse reads [seconds, "value"], and nothing that merely resembles it. It takes the text
// apart itself, since it is called for every number of a batch.
func (s *sample) parse(b []byte) error {
	inside, ok := bytes.CutPrefix(b, []byte("["))
	inside, closed := bytes.CutSuffix(inside, []byte("]"))
	at, value, pair := bytes.Cut(inside, []byte(","))
	value, quoted := bytes.CutPrefix(bytes.TrimSpace(value), []byte(`"`))
	value, unquoted := bytes.CutSuffix(value, []byte(`"`))
	if !ok || !closed || !pair || !quoted || !unquoted {
		return errNoSample
	}
	seconds, err := strconv.ParseFloat(string(bytes.TrimSpace(at)), 64)
	// Beyond the year 5138 nothing is a time, and milliseconds stay exact.
	if err != nil || math.IsNaN(seconds) || math.Abs(seconds) > 1e11 {
		return errNoTime
	}
	s.value, err = strconv.ParseFloat(string(value), 64)
	if err != nil || bytes.ContainsAny(value, "xX_") { // Go's numbers have more forms than those of Prometheus
		return errNoValue
	}
	s.at = time.UnixMilli(int64(math.Round(seconds * 1000)))
	return nil
}

// series is a line of a range query's reply.
type series struct {
	Metric map[string]string
	Values []sample
	// Native says that it has histograms.
	Native bool
}

var (
	errNoMatrix       = errors.New("the reply is not a list of series of numbers")
	errTooManySamples = &sizeError{"a series of more samples than were asked for"}
)

// limits bound what a range query's reply has.
type limits struct{ series, samples int }

// readMatrix reads the reply of a range query, and calls each for every series, which is valid
// until it returns. Series of histograms are among them, without values, so that one of
// them does not spoil the rest.
func readMatrix(body io.Reader, most limits, each func(*series) error) error {
	m := matrixReader{reply: reply{stream: newStream(body, maxBody)}, most: most, next: series{Metric: map[string]string{}}}
	count := 0
	field := m.field
	m.result = func() error {
		return m.list(func() error {
			if count++; count > most.series {
				return &sizeError{fmt.Sprintf("a reply of more than %d series", most.series)}
			}
			clear(m.next.Metric)
			m.next.Values, m.next.Native = m.next.Values[:0], false
			if err := m.object(seriesKeys, field); err != nil {
				return err
			}
			return each(&m.next)
		})
	}
	err := m.read()
	if err == nil && (m.oddResult || m.resultType != "matrix") {
		return errNoMatrix
	}
	return err
}

// matrixReader reads the series of a matrix one after the other.
type matrixReader struct {
	reply

	most  limits
	next  series
	value decoded
}

func (m *matrixReader) field(key int) error {
	switch key {
	case 0:
		return m.labels()
	case 1:
		return m.list(m.sample)
	}
	count := 0
	return m.list(func() error {
		m.next.Native = true
		if count++; count > m.most.samples {
			return errTooManySamples
		}
		return m.skip()
	})
}

func (m *matrixReader) labels() error {
	size := 0
	return m.keys(func(name string) error {
		var text string
		if err := m.Decode(&text); err != nil {
			return err
		}
		if _, twice := m.next.Metric[name]; twice {
			return &keyError{"of a label"}
		}
		m.next.Metric[name] = text
		if size += len(name) + len(text); size > maxToken {
			return &sizeError{fmt.Sprintf("a series with more than %d KiB of labels", maxToken>>10)}
		}
		return nil
	})
}

func (m *matrixReader) sample() error {
	if err := m.Decode(&m.value); err != nil {
		return err
	}
	if len(m.next.Values) == m.most.samples {
		return errTooManySamples
	}
	m.odd = m.odd || m.value.odd != nil
	m.next.Values = append(m.next.Values, m.value.sample)
	return nil
}

func unsupported(format string, args ...any) *health.Problem {
	return &health.Problem{Reason: v1alpha1.ReasonUnsupportedResult, Message: fmt.Sprintf(format, args...)}
}

// number is the reply of an instant query, which must give exactly one.
type number struct {
	reply

	count int // of what is in the result
	parts [2]json.RawMessage
	// of the first element of a vector
	value     decoded
	histogram bool
}

// instantNumber reads the reply of an instant query.
func instantNumber(body io.Reader) (*number, error) {
	n := &number{reply: reply{stream: newStream(body, maxCheckBody)}, value: decoded{null: true}}
	n.result = n.readResult
	if err := n.read(); err != nil {
		return nil, err
	}
	if n.resultType != "vector" || n.oddResult || n.count == 0 {
		return n, nil
	}
	first := newStream(bytes.NewReader(n.parts[0]), maxCheckBody)
	err := first.object(elementKeys, func(key int) error {
		switch key {
		case 1:
			return first.Decode(&n.value)
		case 2:
			n.histogram = true
		}
		return first.skip()
	})
	n.oddResult = first.odd
	return n, err
}

// readResult takes the two parts of a scalar, or the first elements of a vector, and
// counts what there is.
func (n *number) readResult() error {
	open, err := n.open('[')
	if err != nil || !open {
		n.odd = true // null as well
		return err
	}
	return n.elements(func() error {
		n.count++
		if n.count > maxElements {
			return &sizeError{fmt.Sprintf("a reply of more than %d series", maxElements)}
		}
		if n.count > len(n.parts) {
			return n.skip()
		}
		return n.Decode(&n.parts[n.count-1])
	})
}

// one returns the number, or says why there is not exactly one.
func (n *number) one() (sample, *health.Problem) {
	switch n.resultType {
	case "scalar":
		s, err := n.scalar()
		if err != nil {
			return sample{}, unsupported("the query gave a scalar that is no number")
		}
		return usable(s)
	case "vector":
		return n.element()
	case "matrix":
		return sample{}, unsupported("the query gave a range of values: aggregate them over time into one number")
	case "string":
		return sample{}, unsupported("the query gave a string instead of a number")
	}
	return sample{}, unsupported("the query gave a result of an unknown type")
}

func (n *number) scalar() (s sample, err error) {
	if n.oddResult || n.count != len(n.parts) {
		return s, errNoSample
	}
	err = s.parse(fmt.Appendf(nil, "[%s,%s]", n.parts[0], n.parts[1]))
	return s, err
}

func (n *number) element() (sample, *health.Problem) {
	switch {
	case n.oddResult:
		return sample{}, unsupported("the query gave a vector with a sample that is no number")
	case n.count == 0:
		return sample{}, &health.Problem{Reason: v1alpha1.ReasonNoData, Message: "the query gave no series"}
	case n.count > 1:
		return sample{}, &health.Problem{Reason: v1alpha1.ReasonAmbiguousResult, Message: fmt.Sprintf("the query gave %d series: aggregate them into one, with sum or max for instance", n.count)}
	case n.histogram:
		return sample{}, unsupported("the query gave a histogram: take a number from it, with histogram_quantile for instance")
	case n.value.null:
		return sample{}, unsupported("the query gave a sample without a value")
	case n.value.odd != nil:
		return sample{}, unsupported("the query gave a vector with a sample that is no number")
	}
	return usable(n.value.sample)
}

func usable(s sample) (sample, *health.Problem) {
	switch {
	case math.IsNaN(s.value):
		return s, &health.Problem{Reason: v1alpha1.ReasonNoData, Message: "the query gave NaN, which is no number: often a division of 0 by 0"}
	case math.IsInf(s.value, 0):
		return s, unsupported("the query gave an infinity: often a division by 0")
	}
	return s, nil
}
