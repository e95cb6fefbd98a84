package played

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// held is how many evaluations a rollout must sit out before it counts as held.
const held = 6

// good and bad values of the two queries.
func (w *world) goodQueries() {
	w.prom.answer(errorRateMetric, vector("0.001"))
	w.prom.answer(latencyMetric, vector("0.1"))
	w.prom.answer(successMetric, vector("0.999"))
}

// mustHold checks that a rollout does not move while its query is asked several
// times more.
func (w *world) mustHold(name, metric string, weights ...string) {
	w.t.Helper()
	w.awaitQuestions(held, metricOf(metric, name))
	w.wantWeights(name, weights...)
	if wr := w.get(name); wr.Status.Outcome != v1alpha1.OutcomeInProgress {
		w.t.Errorf("%s is no longer in progress: %s", name, summary(wr))
	}
}

// TestC09NothingToMeasure: a rollout that would measure nothing is not admitted,
// unless it says so in so many words.
func TestC09NothingToMeasure(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		health  map[string]any
		message string
	}{
		"no check":       {map[string]any{"checks": []any{}}, "health has no check"},
		"preset only":    {map[string]any{"preset": "Traefik"}, "health has no check"},
		"empty query":    {map[string]any{"checks": []any{map[string]any{"name": "p99", "query": "", "max": int64(1)}}}, "query is required"},
		"no limit":       {map[string]any{"checks": []any{map[string]any{"name": "p99", "query": "up"}}}, "a check needs a limit"},
		"unknown preset": {map[string]any{"preset": "DoesNotExist", "errorRate": map[string]any{"maxPercent": int64(1)}}, "DoesNotExist"},
		"no preset":      {map[string]any{"errorRate": map[string]any{"maxPercent": int64(1)}}, "health.preset is required"},
		"nothing":        {nil, "spec.health is required"},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newRollout(w.namespace, "refused", w.prom.url()))
		if err != nil {
			t.Fatal(err)
		}
		wr := &unstructured.Unstructured{Object: content}
		wr.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("WeightedRollout"))
		delete(wr.Object["spec"].(map[string]any), "health")
		if c.health != nil {
			wr.Object["spec"].(map[string]any)["health"] = c.health
		}
		err = w.client.Create(t.Context(), wr)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: the API server says %v, want a refusal with %q", name, err, c.message)
		}
	}

	w.rollout("disabled", func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Health = &v1alpha1.Health{Disabled: true, Window: "1s", Interval: "1s"}
	})
	w.startManager()
	w.awaitPhase("disabled", v1alpha1.PhasePromoted)
	w.wantWeights("disabled", "100/0", "99/1", "95/5", "90/10", "80/20", "50/50", "20/80", "0/100")
	if questions, n := w.prom.asked(0); n > 0 {
		t.Errorf("health.disabled is true, and yet the metrics server was asked: %+v", questions[0])
	}
}

// TestC16NaN: NaN is no pass and no breach, whichever way the limit goes.
func TestC16NaN(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	w.rollout("upper", ownChecks, soak(1, "10m"))
	w.rollout("lower", ownChecks, successCheck, soak(1, "10m"))
	metrics := map[string]string{"upper": errorRateMetric, "lower": successMetric}
	for name, metric := range metrics {
		w.prom.answer(metricOf(metric, name), vector("NaN"))
	}
	w.startManager()
	for name, metric := range metrics {
		w.awaitVerdict(name, v1alpha1.VerdictUnknown, v1alpha1.ReasonNoData)
		w.mustHold(name, metric, "100/0", "99/1")
	}
	w.prom.answer(metricOf(errorRateMetric, "upper"), vector("0.001"))
	w.prom.answer(metricOf(successMetric, "lower"), vector("0.999"))
	w.awaitShare("upper", "5")
	w.awaitShare("lower", "5")
}

// TestC17NoSeries: a query without a result holds, from the start and half-way,
// and an old value does not stand in for it.
func TestC17NoSeries(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	w.rollout("first", ownChecks, soak(1, "10m"))
	w.rollout("later", ownChecks, soak(2, "20s"), soak(3, "10m"))
	w.prom.answer(metricOf(errorRateMetric, "first"), vector())
	w.startManager()

	wr := w.awaitVerdict("first", v1alpha1.VerdictUnknown, v1alpha1.ReasonNoData)
	if !strings.Contains(wr.Status.Verdict.Message, "no series") {
		t.Errorf("the message does not say that there is no series: %q", wr.Status.Verdict.Message)
	}
	w.mustHold("first", errorRateMetric, "100/0", "99/1")
	w.prom.answer(metricOf(errorRateMetric, "first"), vector("0.001"))

	w.awaitShare("later", "10")
	w.awaitVerdict("later", v1alpha1.VerdictHealthy, v1alpha1.ReasonChecksPassed)
	w.prom.answer(metricOf(errorRateMetric, "later"), vector())
	w.awaitVerdict("later", v1alpha1.VerdictUnknown, v1alpha1.ReasonNoData)
	w.await("later", "the end of the soak, with evidence awaited", func(wr *v1alpha1.WeightedRollout) bool {
		return condition(wr, v1alpha1.ConditionReconciling).Reason == v1alpha1.ReasonAwaitingEvidence
	})
	w.mustHold("later", errorRateMetric, "100/0", "99/1", "95/5", "90/10")
	w.prom.answer(metricOf(errorRateMetric, "later"), vector("0.001"))

	w.awaitShare("first", "5")
	w.awaitShare("later", "20")
}

// TestC17NoSeriesOfThePreset: a canary without metrics of its own is no healthy one.
func TestC17NoSeriesOfThePreset(t *testing.T) {
	w := newWorld(t)
	w.rollout("absent", soak(1, "10m"))
	w.rollout("nan", soak(1, "10m"))
	w.prom.set(w.namespace, canaryOf("absent"), traffic{absent: true})
	w.prom.set(w.namespace, canaryOf("nan"), traffic{perSecond: 50, nan: true})
	w.startManager()
	w.awaitVerdict("absent", v1alpha1.VerdictUnknown, v1alpha1.ReasonNoData)
	w.await("nan", "an unknown verdict", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Verdict != nil && wr.Status.Verdict.State == v1alpha1.VerdictUnknown
	})
	w.awaitQuestions(2*held, "requests_total")
	for _, name := range []string{"absent", "nan"} {
		w.wantWeights(name, "100/0", "99/1")
		w.prom.set(w.namespace, canaryOf(name), fine)
	}
	w.awaitShare("absent", "5")
	w.awaitShare("nan", "5")
}

// TestC18SeveralSeries: of several series none is picked, in whatever order they come.
func TestC18SeveralSeries(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	names := []string{"forward", "backward"}
	for _, name := range names {
		w.rollout(name, ownChecks, soak(1, "10m"))
	}
	w.prom.answer(metricOf(errorRateMetric, "forward"), vector("0.001", "0.40"))
	w.prom.answer(metricOf(errorRateMetric, "backward"), vector("0.40", "0.001"))
	w.startManager()
	var messages []string
	for _, name := range names {
		wr := w.awaitVerdict(name, v1alpha1.VerdictUnknown, v1alpha1.ReasonAmbiguousResult)
		messages = append(messages, wr.Status.Verdict.Message)
		w.mustHold(name, errorRateMetric, "100/0", "99/1")
	}
	if messages[0] != messages[1] || !strings.Contains(messages[0], "2 series") || !strings.Contains(messages[0], "aggregate") {
		t.Errorf("the messages differ, or do not help: %q", messages)
	}
	for _, name := range names {
		w.prom.answer(metricOf(errorRateMetric, name), vector("0.001", "0.002"))
	}
	for _, name := range names {
		w.mustHold(name, errorRateMetric, "100/0", "99/1")
		if v := w.get(name).Status.Verdict; v.Reason != v1alpha1.ReasonAmbiguousResult {
			t.Errorf("%s: the verdict became %+v", name, v)
		}
		w.prom.answer(metricOf(errorRateMetric, name), vector("0.001"))
	}
	for _, name := range names {
		w.awaitShare(name, "5")
	}
}

// TestC19ResultTypes: a scalar and an exponent are numbers; what is no number is
// unsupported, and harms nobody else.
func TestC19ResultTypes(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	usable := map[string]func(string) string{
		"scalar":   raw("scalar", `[AT,"0.001"]`),
		"exponent": raw("vector", `[{"metric":{},"value":[AT,"1e-3"]}]`),
	}
	unusable := map[string]func(string) string{
		"matrix":   raw("matrix", `[{"metric":{},"values":[[AT,"0.001"]]}]`),
		"string":   raw("string", `[AT,"0.001"]`),
		"short":    raw("vector", `[{"metric":{},"value":[AT]}]`),
		"letters":  raw("vector", `[{"metric":{},"value":[AT,"abc"]}]`),
		"infinity": raw("vector", `[{"metric":{},"value":[AT,"-Inf"]}]`),
	}
	for _, answers := range []map[string]func(string) string{usable, unusable} {
		for name, answer := range answers {
			w.prom.answer(metricOf(errorRateMetric, name), answer)
			w.rollout(name, ownChecks, soak(1, "10m"))
		}
	}
	w.startManager()
	pid := w.pid()
	for name := range unusable {
		w.awaitVerdict(name, v1alpha1.VerdictUnknown, v1alpha1.ReasonUnsupportedResult)
	}
	for name := range usable {
		w.awaitShare(name, "5")
	}
	for name := range unusable {
		w.mustHold(name, errorRateMetric, "100/0", "99/1")
		w.prom.answer(metricOf(errorRateMetric, name), vector("0.001"))
	}
	for name := range unusable {
		w.awaitShare(name, "5")
	}
	if w.pid() != pid || !w.manager.Running() {
		t.Error("the manager is no longer the same process")
	}
}

// TestC20MetricsServerFails: in turn, at every stage, the server fails in another
// way. The share is held, the verdict says why, nothing is rolled back, and it goes
// on as soon as the server does.
func TestC20MetricsServerFails(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	const retryAfter = 5 * time.Second
	failures := []struct {
		share           v1alpha1.Percent
		outage          outage
		reason, message string
	}{
		{"1", outage{refuse: true}, v1alpha1.ReasonProviderError, "connection refused"},
		{"5", outage{stall: true}, v1alpha1.ReasonProviderError, "did not answer"},
		{"10", outage{code: 429, header: http.Header{"Retry-After": {"5"}}}, v1alpha1.ReasonProviderError, "HTTP 429 or asked for a rest"},
		{"20", outage{code: 500, body: "out of memory"}, v1alpha1.ReasonProviderError, "HTTP 500"},
		{"50", outage{code: 503, header: http.Header{"Content-Type": {"text/html"}}, body: "<html>maintenance</html>"}, v1alpha1.ReasonProviderError, "HTTP 503"},
		{"80", outage{code: 401, body: `{"status":"error"}`}, v1alpha1.ReasonProviderAuth, "HTTP 401"},
		{"100", outage{code: 200, body: "<html>sign in</html>"}, v1alpha1.ReasonProviderError, "not one of the Prometheus API"},
	}
	w.rollout("web", addChecks)
	var asked atomic.Int64
	w.api.onRequest(func(r *request) verdict {
		if p, ok := r.firstPair(); r.isRouteWrite() && ok {
			for _, f := range failures {
				if v1alpha1.PercentFromBasisPoints(100*p.canary) == f.share && p.canary+p.stable == 100 {
					w.prom.fail(f.outage)
					_, n := w.prom.asked(0)
					asked.Store(int64(n))
				}
			}
		}
		return verdict{}
	})
	// The first failure is there before the manager is.
	w.prom.fail(failures[0].outage)
	w.startManager("--prometheus-timeout=1s")
	pid := w.pid()
	for _, f := range failures {
		w.awaitShare("web", f.share)
		wr := w.awaitVerdict("web", v1alpha1.VerdictUnknown, f.reason)
		if !slices.ContainsFunc(strings.Split(f.message, " or "), func(text string) bool { return strings.Contains(wr.Status.Verdict.Message, text) }) {
			t.Errorf("at %s percent: the verdict's message is %q, want one with %q", f.share, wr.Status.Verdict.Message, f.message)
		}
		before := w.routes.of("web")
		time.Sleep(4 * time.Second)
		if f.outage.code == http.StatusTooManyRequests {
			w.mustRest(int(asked.Load()), retryAfter)
		}
		if wr := w.get("web"); desired(wr) != f.share || wr.Status.Outcome != v1alpha1.OutcomeInProgress || wr.Status.Verdict.State != v1alpha1.VerdictUnknown {
			t.Errorf("at %s percent: not held: %s", f.share, summary(wr))
		}
		if after := w.routes.of("web"); !slices.Equal(before, after) {
			t.Errorf("at %s percent: the weights went from %v to %v", f.share, before, after)
		}
		w.prom.fail(outage{})
	}
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10", "80/20", "50/50", "20/80", "0/100")
	if w.pid() != pid {
		t.Error("the manager is no longer the same process")
	}
}

// TestC20OneQuestionAtATime: a server that is slower than the interval is not asked
// again before it has answered or the wait is over.
func TestC20OneQuestionAtATime(t *testing.T) {
	w := newWorld(t)
	w.goodQueries()
	w.rollout("web", addChecks)
	w.prom.fail(outage{stall: true})
	w.startManager("--prometheus-timeout=4s")
	w.await("web", "an unknown verdict", func(wr *v1alpha1.WeightedRollout) bool {
		return wr.Status.Verdict != nil && wr.Status.Verdict.State == v1alpha1.VerdictUnknown
	})
	time.Sleep(10 * time.Second)
	// That a wait is over shows here a moment later than there.
	if overlap := w.prom.longestOverlap(); overlap > 2*time.Second {
		t.Errorf("two requests for one query were outstanding at once for %s", overlap)
	}
	w.wantWeights("web", "100/0", "99/1")
	w.prom.fail(outage{})
	w.awaitShare("web", "5")
}

// mustRest waits until the server was asked twice since the given question, and
// checks that there was a rest in between. A few questions may have been under way
// when the first one was refused.
func (w *world) mustRest(since int, rest time.Duration) {
	w.t.Helper()
	var all []question
	eventually(w.t, "another question after the rest", func() (bool, string) {
		all, _ = w.prom.asked(since)
		return len(all) > 0 && all[len(all)-1].at.Sub(all[0].at) >= rest, "none"
	})
	for i := 1; i < len(all); i++ {
		gap := all[i].at.Sub(all[i-1].at)
		sameRound := all[i].end == all[i-1].end || gap < 100*time.Millisecond
		if gap < rest-100*time.Millisecond && !sameRound {
			w.t.Errorf("the server asked for a rest of %s, and was asked again after %s", rest, gap)
		}
	}
}

// TestMetricsAwayForHalfAMinute: nobody listens for 30 seconds in the middle of a
// stage.
func TestMetricsAwayForHalfAMinute(t *testing.T) {
	w := newWorld(t)
	w.rollout("web", soak(2, "5s"))
	w.startManager()
	w.awaitShare("web", "10")
	w.prom.fail(outage{refuse: true})
	began := time.Now()
	wr := w.awaitVerdict("web", v1alpha1.VerdictUnknown, v1alpha1.ReasonProviderError)
	at := wr.Status.Share
	time.Sleep(time.Until(began.Add(30 * time.Second)))
	wr = w.get("web")
	if desired(wr) != "10" || wr.Status.Outcome != v1alpha1.OutcomeInProgress || !wr.Status.Share.ConfirmedAt.Equal(at.ConfirmedAt) {
		t.Errorf("not held: %s", summary(wr))
	}
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10")
	w.prom.fail(outage{})
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", "100/0", "99/1", "95/5", "90/10", "80/20", "50/50", "20/80", "0/100")
}
