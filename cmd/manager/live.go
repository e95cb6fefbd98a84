package main

import (
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weightedrollout/weightedrollout/internal/live"
)

// serveEvidence adds the live evidence to the server of the metrics. It is served only
// where that server knows whom it serves.
func serveEvidence(mgr ctrl.Manager, o options, source live.Source) error {
	if !o.metricsSecure || o.metricsAddress == "0" {
		return nil
	}
	leading := func() bool {
		select {
		case <-mgr.Elected():
			return true
		default:
			return false
		}
	}
	if err := mgr.AddMetricsServerExtraHandler(live.Prefix, &live.Handler{Source: source, Leading: leading, Now: time.Now}); err != nil {
		return fmt.Errorf("serve the evidence: %w", err)
	}
	return nil
}
