package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	gaugeInterval = 500 * time.Millisecond
	// toleratedFailures in a row is how often a reading may fail.
	toleratedFailures = 10
)

// count is what the gateway has counted for one track.
type count struct {
	requests float64
	errors   float64 // answers of 500 and above
}

// sample is what the gateway had counted at one time.
type sample struct {
	at     time.Time
	tracks [2]count
}

func (s sample) minus(o sample) sample {
	for t := range s.tracks {
		s.tracks[t].requests -= o.tracks[t].requests
		s.tracks[t].errors -= o.tracks[t].errors
	}
	return s
}

// share is the canary's part of the requests in percent.
func (s sample) share() float64 {
	all := s.tracks[stable].requests + s.tracks[canary].requests
	if all == 0 {
		return 0
	}
	return 100 * s.tracks[canary].requests / all
}

// countAtGateway reads the gateway's own counters, past Prometheus, so that the
// demo does not check the controller by what the controller reads.
func countAtGateway(ctx context.Context, url string, s scenario, seen *observation) error {
	failures := 0
	for {
		sample, err := readCounters(ctx, url, s)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the end of ctx is the normal end of counting
		case err == nil:
			failures = 0
			seen.count(sample)
		default:
			if failures++; failures == toleratedFailures {
				return fmt.Errorf("reading the gateway's counters: %w", err)
			}
		}
		if !rest(ctx, gaugeInterval) {
			return nil
		}
	}
}

func readCounters(ctx context.Context, url string, s scenario) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return sample{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return sample{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return sample{}, errors.New(resp.Status)
	}
	return parseCounters(resp.Body, s, time.Now())
}

func parseCounters(text io.Reader, s scenario, at time.Time) (sample, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return sample{}, err
	}
	result := sample{at: at}
	for _, metric := range families["traefik_service_requests_total"].GetMetric() {
		for _, t := range tracks {
			if label(metric, "service") != gatewayService(s, t) {
				continue
			}
			n := metric.GetCounter().GetValue()
			result.tracks[t].requests += n
			if strings.HasPrefix(label(metric, "code"), "5") {
				result.tracks[t].errors += n
			}
		}
	}
	return result, nil
}

// gatewayService is what Traefik calls a track's backend in its metrics.
func gatewayService(s scenario, t track) string {
	return fmt.Sprintf("%s-%s-http-%d@kubernetesgateway", namespace, s.service(t), testbed.BackendPort)
}

func label(metric *dto.Metric, name string) string {
	for _, pair := range metric.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}
