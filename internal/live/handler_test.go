package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

var epoch = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// source knows one rollout.
type source struct{ evidence live.Evidence }

func (s source) Evidence(k types.NamespacedName, _ time.Time) (live.Evidence, bool) {
	return s.evidence, k == types.NamespacedName{Namespace: "shop", Name: "checkout.v2"}
}

func get(t *testing.T, h *live.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return rec
}

func handler(e live.Evidence) *live.Handler {
	return &live.Handler{Source: source{e}, Now: func() time.Time { return epoch.Add(10 * time.Minute) }}
}

func TestRefusals(t *testing.T) {
	h := handler(live.Evidence{})
	idle := handler(live.Evidence{})
	idle.Leading = func() bool { return false }
	for _, tc := range []struct {
		h            *live.Handler
		method, path string
		code         int
		says         string
	}{
		{h, http.MethodPost, "/evidence/shop/checkout.v2", http.StatusMethodNotAllowed, "use GET"},
		{h, http.MethodGet, "/evidence/", http.StatusNotFound, "NAMESPACE/NAME"},
		{h, http.MethodGet, "/evidence/shop", http.StatusNotFound, "NAMESPACE/NAME"},
		{h, http.MethodGet, "/evidence/shop/a/b", http.StatusNotFound, "NAMESPACE/NAME"},
		{h, http.MethodGet, "/evidence/shop/Check%0Aout", http.StatusNotFound, "NAMESPACE/NAME"},
		{h, http.MethodGet, "/evidence/shop/" + strings.Repeat("a", 254), http.StatusNotFound, "NAMESPACE/NAME"},
		{h, http.MethodGet, "/evidence/shop/other", http.StatusNotFound, "shop/other"},
		{idle, http.MethodGet, "/evidence/shop/checkout.v2", http.StatusServiceUnavailable, "lease"},
	} {
		rec := get(t, tc.h, tc.method, tc.path)
		var body struct{ Error string }
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || rec.Code != tc.code || !strings.Contains(body.Error, tc.says) {
			t.Errorf("%s %s: %d %s (%v)", tc.method, tc.path, rec.Code, rec.Body, err)
		}
	}
}

// TestDocument: the numbers of both tracks, what is awaited and about how long.
func TestDocument(t *testing.T) {
	config, err := health.ConfigFrom(&v1alpha1.Health{
		Preset: v1alpha1.PresetTraefik, MinRequests: 1000, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "1"}, Latency: &v1alpha1.Latency{Max: "500ms"},
		Checks: []v1alpha1.Check{{Name: "queue", Query: "q", Max: new(v1alpha1.Decimal("10"))}},
	}, "1m")
	if err != nil {
		t.Fatal(err)
	}
	record := health.Share{Config: config, Subject: health.TrackCanary, ConfirmedAt: epoch}.Record()
	var end time.Time
	for i := 5; i <= 90; i++ {
		end = epoch.Add(time.Duration(i) * 15 * time.Second)
		reading := func(n, failed float64) health.Reading {
			return health.Reading{Found: true, Requests: n, Errors: failed, NewestSample: health.At(end), Buckets: []health.Bucket{{UpperBound: 0.5, Count: n}, {UpperBound: math.Inf(1), Count: n}}}
		}
		record.Add([]health.Window{{
			Start: end.Add(-time.Minute), End: end, Stable: reading(600, 1), Canary: reading(30, 0),
			Checks: []health.CheckResult{{Name: "queue", Value: 3, SampleAt: end}},
		}}, end)
	}
	rec := get(t, handler(live.Evidence{Report: health.ReportOn(record.Input(end)), Attempt: 2, Subject: health.TrackCanary, ConfirmedAt: epoch}), http.MethodGet, "/evidence/shop/checkout.v2")
	var got live.Document
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("%d %v\n%s", rec.Code, err, rec.Body)
	}
	if got.Verdict.State != "Unknown" || got.Verdict.Reason != v1alpha1.ReasonInsufficientRequests || got.Attempt != 2 || got.Subject != "canary" || !got.ConfirmedAt.Equal(epoch) {
		t.Errorf("got %+v", got)
	}
	// 21 full minutes at 30 requests each are there, and 370 are missing.
	want := live.Awaited{What: "about 370 more requests (630 of 1000)", Requests: 370, AboutSeconds: 740}
	if diff := cmp.Diff(want, got.Stage); diff != "" {
		t.Errorf("stage (-want +got):\n%s", diff)
	}
	if !got.Ramp.Open || len(got.Evaluations) != health.MaxEvaluations || got.Comparison == nil || got.Comparison.Proof != 20 {
		t.Errorf("ramp %+v, %d evaluations, comparison %+v", got.Ramp, len(got.Evaluations), got.Comparison)
	}
	if diff := cmp.Diff(&live.Traffic{Canary: 630, Stable: 12_600}, got.Traffic); diff != "" {
		t.Errorf("traffic (-want +got):\n%s", diff)
	}
	last := got.Evaluations[len(got.Evaluations)-1]
	wantLast := live.Evaluation{
		Start: end.Add(-time.Minute), End: end, Outcome: "Passed", Checks: map[string]float64{"queue": 3},
		Stable: &live.Numbers{Requests: 600, Errors: 1, Slow: new(0.0), QuantileSeconds: last.Stable.QuantileSeconds},
		Canary: &live.Numbers{Requests: 30, Slow: new(0.0), QuantileSeconds: last.Canary.QuantileSeconds},
	}
	if diff := cmp.Diff(wantLast, last); diff != "" {
		t.Errorf("last evaluation (-want +got):\n%s", diff)
	}
	if rec.Header().Get("Content-Type") != "application/json" || rec.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("headers %v", rec.Header())
	}
}

// TestDocumentOfNothing: before there is evidence it says when there will be.
func TestDocumentOfNothing(t *testing.T) {
	config, err := health.ConfigFrom(&v1alpha1.Health{Preset: v1alpha1.PresetTraefik, ErrorRate: &v1alpha1.ErrorRate{MaxPercent: "1"}}, "1m")
	if err != nil {
		t.Fatal(err)
	}
	record := health.Share{Config: config, Subject: health.TrackCanary, ConfirmedAt: epoch.Add(time.Second)}.Record()
	rec := get(t, handler(live.Evidence{Report: health.ReportOn(record.Input(epoch.Add(20 * time.Second)))}), http.MethodGet, "/evidence/shop/checkout.v2")
	var got live.Document
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("%d %v\n%s", rec.Code, err, rec.Body)
	}
	if got.Traffic == nil || got.Traffic.NotCounted == "" {
		t.Errorf("traffic %+v", got.Traffic)
	}
	if got.Verdict.Reason != v1alpha1.ReasonAwaitingWindow || got.Ramp.AboutSeconds != 100 || got.Evaluations == nil || len(got.Evaluations) != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestByUID: who cannot send a token is served for knowing the rollout's uid.
func TestByUID(t *testing.T) {
	uids := func(_ context.Context, k types.NamespacedName) (types.UID, error) {
		switch k.Name {
		case "checkout.v2":
			return "9b1c", nil
		case "nothing.gathered":
			return "9b1c", nil
		case "without":
			return "", nil
		}
		return "", errors.New("there is none")
	}
	h := handler(live.Evidence{Attempt: 3})
	h.UID = uids
	idle := handler(live.Evidence{})
	idle.UID, idle.Leading = uids, func() bool { return false }
	slow := handler(live.Evidence{})
	slow.UID = func(ctx context.Context, _ types.NamespacedName) (types.UID, error) { return "", ctx.Err() }
	for name, test := range map[string]struct {
		h        *live.Handler
		of, uid  string
		token    string
		gone     bool // the one who asks
		want     int
		says     string
		mustLack string
	}{
		"the uid":                       {h: h, of: "checkout.v2", uid: "9b1c", want: http.StatusOK, says: `"attempt": 3`},
		"another uid":                   {h: h, of: "checkout.v2", uid: "9b1d", want: http.StatusForbidden, says: "is not that of this WeightedRollout", mustLack: "9b1c"},
		"a part of the uid":             {h: h, of: "checkout.v2", uid: "9b1", want: http.StatusForbidden},
		"more than the uid":             {h: h, of: "checkout.v2", uid: "9b1c0", want: http.StatusForbidden},
		"no such rollout":               {h: h, of: "missing", uid: "9b1c", want: http.StatusForbidden, mustLack: "missing"},
		"a rollout without a uid":       {h: h, of: "without", uid: "x", want: http.StatusForbidden},
		"nothing gathered":              {h: h, of: "nothing.gathered", uid: "9b1c", want: http.StatusNotFound, says: "no evidence is gathered"},
		"another replica":               {h: idle, of: "checkout.v2", uid: "9b1c", want: http.StatusServiceUnavailable, says: "lease"},
		"nobody looks uids up":          {h: handler(live.Evidence{}), of: "checkout.v2", uid: "9b1c", want: http.StatusForbidden},
		"a cache that is not there yet": {h: slow, of: "checkout.v2", uid: "9b1c", gone: true, want: http.StatusServiceUnavailable, says: "ask again"},
		"a token beside it":             {h: h, of: "checkout.v2", uid: "wrong", token: "t", want: http.StatusOK}, // the server has looked at the token
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.gone {
				cancel()
			}
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, live.Prefix+"shop/"+test.of, nil)
			r.Header.Set(live.UIDHeader, test.uid)
			if test.token != "" {
				r.Header.Set("Authorization", "Bearer "+test.token)
			}
			rec := httptest.NewRecorder()
			test.h.ServeHTTP(rec, r)
			if body := rec.Body.String(); rec.Code != test.want || !strings.Contains(body, test.says) || test.mustLack != "" && strings.Contains(body, test.mustLack) {
				t.Errorf("%d %s, want %d with %q and without %q", rec.Code, body, test.want, test.says, test.mustLack)
			}
		})
	}
}
