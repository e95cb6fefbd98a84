package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
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
	handler := &live.Handler{Source: source, Leading: leading, UID: cachedUID(mgr.GetClient()), Now: time.Now}
	if err := mgr.AddMetricsServerExtraHandler(live.Prefix, handler); err != nil {
		return fmt.Errorf("serve the evidence: %w", err)
	}
	return nil
}

// cachedUID looks uids up in the manager's cache, which the controller keeps anyway.
func cachedUID(cache client.Reader) func(context.Context, types.NamespacedName) (types.UID, error) {
	return func(ctx context.Context, k types.NamespacedName) (types.UID, error) {
		var wr v1alpha1.WeightedRollout
		if err := cache.Get(ctx, k, &wr); err != nil {
			return "", fmt.Errorf("look up WeightedRollout %s: %w", k, err)
		}
		return wr.UID, nil
	}
}

// filterProvider makes what guards the server of the metrics.
type filterProvider func(*rest.Config, *http.Client) (metricsserver.Filter, error)

// unlessByUID lets requests for evidence that carry a uid in place of a token go round
// the guard, to the handler, which compares the uid.
func unlessByUID(guard filterProvider) filterProvider {
	return func(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
		filter, err := guard(config, httpClient)
		if err != nil {
			return nil, err
		}
		return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
			guarded, err := filter(log, handler)
			if err != nil {
				return nil, err
			}
			return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if live.ByUID(r) {
					handler.ServeHTTP(rw, r)
					return
				}
				guarded.ServeHTTP(rw, r)
			}), nil
		}, nil
	}
}
