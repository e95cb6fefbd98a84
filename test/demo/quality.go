package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	promapi "github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

const (
	qualityInterval = time.Second
	qualityWindow   = "5s"
)

// quality is what Prometheus says of a track: NaN where it has nothing to say.
type quality struct {
	requests     float64 // in qualityWindow, about
	errorPercent float64
	p99          float64 // seconds
}

// readQuality asks Prometheus for both tracks, for the view only. A failure shows
// as a gap there.
func readQuality(ctx context.Context, url string, s scenario, seen *observation) error {
	client, err := promapi.NewClient(promapi.Config{Address: url})
	if err != nil {
		return fmt.Errorf("making a client for prometheus: %w", err)
	}
	api := promv1.NewAPI(client)
	services := fmt.Sprintf(`service=~"%s|%s"`, gatewayService(s, stable), gatewayService(s, canary))
	errorQuery := fmt.Sprintf(`100 * (sum by (service) (rate(traefik_service_requests_total{%[1]s,code=~"5.."}[%[2]s]))`+
		` or 0 * sum by (service) (rate(traefik_service_requests_total{%[1]s}[%[2]s])))`+
		` / sum by (service) (rate(traefik_service_requests_total{%[1]s}[%[2]s]))`, services, qualityWindow)
	p99Query := fmt.Sprintf(`histogram_quantile(0.99, sum by (service, le) (rate(traefik_service_request_duration_seconds_bucket{%s}[%s])))`,
		services, qualityWindow)
	requestsQuery := fmt.Sprintf(`sum by (service) (increase(traefik_service_requests_total{%s}[%s]))`, services, qualityWindow)
	for {
		requests := ask(ctx, api, s, requestsQuery)
		errorPercents := ask(ctx, api, s, errorQuery)
		p99s := ask(ctx, api, s, p99Query)
		var both [2]quality
		for _, t := range tracks {
			both[t] = quality{requests: requests[t], errorPercent: errorPercents[t], p99: p99s[t]}
		}
		seen.judgeQuality(both)
		if !rest(ctx, qualityInterval) {
			return nil
		}
	}
}

func ask(ctx context.Context, api promv1.API, s scenario, query string) [2]float64 {
	values := [2]float64{math.NaN(), math.NaN()}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, _, _, err := api.Query(ctx, query, time.Now())
	if err != nil {
		return values
	}
	vector, ok := answer.(model.Vector)
	if !ok {
		return values
	}
	for _, element := range vector {
		for _, t := range tracks {
			if strings.HasPrefix(string(element.Metric["service"]), namespace+"-"+s.service(t)+"-") {
				values[t] = float64(element.Value)
			}
		}
	}
	return values
}
