package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// newOracle serves to the script in the browser what the API server has, and plays the
// controller when it is told to. It is another site for the dashboard as well.
func newOracle(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>another site</title>")
	})
	mux.HandleFunc("GET /rollouts", func(w http.ResponseWriter, r *http.Request) {
		list := &v1alpha1.WeightedRolloutList{}
		reply(t, w, list, bed.Client.List(r.Context(), list))
	})
	mux.HandleFunc("GET /events/{namespace}", func(w http.ResponseWriter, r *http.Request) {
		list := &eventsv1.EventList{}
		reply(t, w, list, bed.Client.List(r.Context(), list, client.InNamespace(r.PathValue("namespace"))))
	})
	mux.HandleFunc("POST /play/{part}/{namespace}/{name}", func(w http.ResponseWriter, r *http.Request) {
		wr, err := play(r.Context(), r.PathValue("part"), client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")})
		reply(t, w, wr, err)
	})
	oracle := httptest.NewServer(mux)
	t.Cleanup(oracle.Close)
	return oracle
}

func reply(t *testing.T, w http.ResponseWriter, content any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if err := json.NewEncoder(w).Encode(content); err != nil {
		t.Error(err)
	}
}

// play writes a status as the controller would.
func play(ctx context.Context, part string, of client.ObjectKey) (*v1alpha1.WeightedRollout, error) {
	wr := &v1alpha1.WeightedRollout{}
	return wr, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := bed.Client.Get(ctx, of, wr); err != nil {
			return err
		}
		st, now := &wr.Status, time.Now()
		switch part {
		case "raise":
			more := v1alpha1.Percent("24")
			st.Share.Desired, st.Share.ChangedAt, st.Share.ConfirmedAt = &more, micro(now), nil
		case "rollback":
			none := v1alpha1.Percent("0")
			st.Phase, st.Outcome, st.Share.Desired, st.Stage = v1alpha1.PhaseRolledBack, v1alpha1.OutcomeRolledBack, &none, nil
			st.NextTransitionTime = nil
			st.Conditions = []metav1.Condition{is(v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonAborted, "rolled back: a person aborted it", now)}
		case "next-attempt":
			st.Attempt++
		default:
			return fmt.Errorf("there is no part %q", part)
		}
		return bed.Client.Status().Update(ctx, wr)
	})
}
