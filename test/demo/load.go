package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

const (
	requestsPerSecond = 250
	requestTimeout    = 10 * time.Second
	// answersPath tells which of the services answered.
	answersPath = "/api/info"
)

// awaitRoute waits until the gateway knows the route.
func awaitRoute(ctx context.Context, gatewayURL, host string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("the gateway does not serve %s after a minute", host))
	defer cancel()
	for {
		if code, err := get(ctx, gatewayURL, host); err == nil && code == http.StatusOK {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func get(ctx context.Context, gatewayURL, host string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, gatewayURL+answersPath, nil)
	if err != nil {
		return 0, err
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// sendLoad sends a steady load to the gateway until ctx ends, and tells each answer as
// a client sees it.
func sendLoad(ctx context.Context, gatewayURL string, s scenario, each func(answer)) error {
	targeter := vegeta.NewStaticTargeter(vegeta.Target{
		Method: http.MethodGet, URL: gatewayURL + answersPath,
		Header: http.Header{"Host": []string{s.host()}},
	})
	attacker := vegeta.NewAttacker(
		vegeta.KeepAlive(true), vegeta.HTTP2(false), vegeta.Redirects(vegeta.NoFollow),
		vegeta.Connections(64), vegeta.Workers(8), vegeta.MaxWorkers(256),
		vegeta.Timeout(requestTimeout), vegeta.MaxBody(4096),
	)
	const untilStopped = 0
	results := attacker.Attack(targeter, vegeta.Rate{Freq: requestsPerSecond, Per: time.Second}, untilStopped, "")
	release := context.AfterFunc(ctx, func() { attacker.Stop() })
	defer release()
	for r := range results {
		each(classify(r, s))
	}
	if ctx.Err() == nil {
		return fmt.Errorf("the load of %s ended by itself", s.name)
	}
	return nil
}

// answer is one response as a client sees it.
type answer struct {
	// by is the track that answered; an error says nothing of that.
	by    track
	known bool
	// failed is any answer but a success.
	failed bool
	// refused is an answer of 4xx, which is no error of the service.
	refused bool
	// lost says why there was no answer at all.
	lost string
}

func classify(r *vegeta.Result, s scenario) answer {
	if r.Code == 0 {
		return answer{failed: true, lost: r.Error}
	}
	a := answer{failed: r.Code >= http.StatusBadRequest}
	a.refused = a.failed && r.Code < http.StatusInternalServerError
	var info struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(r.Body, &info) != nil {
		return a
	}
	for _, t := range tracks {
		if info.Message == s.service(t) {
			a.by, a.known = t, true
		}
	}
	return a
}
