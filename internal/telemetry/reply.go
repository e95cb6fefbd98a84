package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
// error rate, a pass.
type reply struct {
	Status    string   `json:"status"`
	ErrorType string   `json:"errorType"`
	Warnings  []string `json:"warnings"`
	Data      struct {
		ResultType string          `json:"resultType"`
		Result     json.RawMessage `json:"result"`
	} `json:"data"`
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

func decodeReply(body []byte) (*reply, error) {
	var r reply
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, errNotPrometheus
	}
	switch {
	case r.Status == "error":
		class := "unknown error"
		if slices.Contains(errorClasses, r.ErrorType) {
			class = r.ErrorType
		}
		return nil, &apiError{class: class}
	case r.Status != "success":
		return nil, errNotPrometheus
	case slices.ContainsFunc(r.Warnings, isWarning):
		return nil, errPartial
	}
	return &r, nil
}

// isWarning tells warnings from mere remarks. Prometheus before version 3 sends
// both in one list.
func isWarning(text string) bool { return !strings.HasPrefix(text, "PromQL info:") }

// sample is a number at a time.
type sample struct {
	at    time.Time
	value float64
}

// UnmarshalJSON reads [seconds, "value"], and nothing that merely resembles it. It
// takes the text apart itself, since it is called for every number of a batch.
func (s *sample) UnmarshalJSON(b []byte) error {
	inside, ok := bytes.CutPrefix(b, []byte("["))
	inside, closed := bytes.CutSuffix(inside, []byte("]"))
	at, value, pair := bytes.Cut(inside, []byte(","))
	value, quoted := bytes.CutPrefix(bytes.TrimSpace(value), []byte(`"`))
	value, unquoted := bytes.CutSuffix(value, []byte(`"`))
	if !ok || !closed || !pair || !quoted || !unquoted {
		return errors.New(`a sample is not of the form [seconds, "value"]`)
	}
	seconds, err := strconv.ParseFloat(string(bytes.TrimSpace(at)), 64)
	// Beyond the year 5138 nothing is a time, and milliseconds stay exact.
	if err != nil || math.IsNaN(seconds) || math.Abs(seconds) > 1e11 {
		return errors.New("the time of a sample is no number")
	}
	s.value, err = strconv.ParseFloat(string(value), 64)
	if err != nil {
		return errors.New("the value of a sample is no number")
	}
	s.at = time.UnixMilli(int64(math.Round(seconds * 1000)))
	return nil
}

// series is a line of a range query's reply.
type series struct {
	Metric     map[string]string `json:"metric"`
	Values     []sample          `json:"values"`
	Histograms json.RawMessage   `json:"histograms"`
}

var errNoMatrix = errors.New("the reply is not a list of series of numbers")

// matrix reads the reply of a range query. Series of histograms are among it, without
// values, so that one of them does not spoil the rest.
func (r *reply) matrix() ([]series, error) {
	var m []series
	if r.Data.ResultType != "matrix" || json.Unmarshal(r.Data.Result, &m) != nil {
		return nil, errNoMatrix
	}
	return m, nil
}

func unsupported(format string, args ...any) *health.Problem {
	return &health.Problem{Reason: v1alpha1.ReasonUnsupportedResult, Message: fmt.Sprintf(format, args...)}
}

// one reads the reply of an instant query that must give exactly one number.
func (r *reply) one() (sample, *health.Problem) {
	switch r.Data.ResultType {
	case "scalar":
		var s *sample
		if json.Unmarshal(r.Data.Result, &s) != nil || s == nil {
			return sample{}, unsupported("the query gave a scalar that is no number")
		}
		return usable(*s)
	case "vector":
		return r.element()
	case "matrix":
		return sample{}, unsupported("the query gave a range of values: aggregate them over time into one number")
	case "string":
		return sample{}, unsupported("the query gave a string instead of a number")
	}
	return sample{}, unsupported("the query gave a result of an unknown type")
}

func (r *reply) element() (sample, *health.Problem) {
	var elements []struct {
		Value     *sample         `json:"value"`
		Histogram json.RawMessage `json:"histogram"`
	}
	if json.Unmarshal(r.Data.Result, &elements) != nil || elements == nil {
		return sample{}, unsupported("the query gave a vector with a sample that is no number")
	}
	switch {
	case len(elements) == 0:
		return sample{}, &health.Problem{Reason: v1alpha1.ReasonNoData, Message: "the query gave no series"}
	case len(elements) > 1:
		return sample{}, &health.Problem{Reason: v1alpha1.ReasonAmbiguousResult, Message: fmt.Sprintf("the query gave %d series: aggregate them into one, with sum or max for instance", len(elements))}
	case len(elements[0].Histogram) > 0:
		return sample{}, unsupported("the query gave a histogram: take a number from it, with histogram_quantile for instance")
	case elements[0].Value == nil:
		return sample{}, unsupported("the query gave a sample without a value")
	}
	return usable(*elements[0].Value)
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
