package telemetry

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
)

// TestKeysMustBeClear: of a key that comes twice, or in two spellings, nobody knows which
// one counts. The first of each pair here would hold the rollout, and the last would pass.
func TestKeysMustBeClear(t *testing.T) {
	const scalar = `"data":{"resultType":"scalar","result":[T,"0.001"]}`
	bodies := map[string]string{
		"value":              `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[T,"0.25"],"value":[T,"0.001"]}]}}`,
		"value, another way": `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[T,"0.001"],"VALUE":[T,"0.25"]}]}}`,
		"only another way":   `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"Value":[T,"0.001"]}]}}`,
		"histogram":          `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"Histogram":[T,{}],"value":[T,"0.001"]}]}}`,
		"metric":             `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"metric":{},"value":[T,"0.001"]}]}}`,
		"result":             `{"status":"success","data":{"resultType":"scalar","result":[T,"0.25"],"result":[T,"0.001"]}}`,
		"resultType":         `{"status":"success","data":{"resultType":"matrix","resulttype":"scalar","result":[T,"0.001"]}}`,
		"data":               `{"status":"success","data":{},` + scalar + `}`,
		"status":             `{"status":"error","status":"success",` + scalar + `}`,
		"Status":             `{"Status":"error","status":"success",` + scalar + `}`,
		"long s":             `{"\u017ftatus":"success",` + scalar + `}`,
		"errorType":          `{"status":"success","errorType":"","ERRORTYPE":"timeout",` + scalar + `}`,
		"warnings":           `{"status":"success","warnings":["x"],"warnings":[],` + scalar + `}`,
		"Warnings":           `{"status":"success","Warnings":["x"],` + scalar + `}`,
	}
	for name, text := range bodies {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newMetricsServer(t, body(text)).URL)
			f.Track(target("web", checksOnly("up")))
			f.step(time.Second)
			if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnknown || v.Reason != v1alpha1.ReasonProviderError || v.RampReady || v.StageReady {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestKeysOfSeriesMustBeClear is TestKeysMustBeClear for what a preset reads.
func TestKeysOfSeriesMustBeClear(t *testing.T) {
	const (
		owner  = `"service":"shop-web-canary-http-80@kubernetesgateway"`
		good   = `{"metric":{` + owner + `,"code":"200"},"values":[[#,"120"]]},{"metric":{` + owner + `,"wr_kind":"newest"},"values":[[#,"#"]]}`
		around = `{"status":"success","data":{"resultType":"matrix","result":[%s]}}`
	)
	results := map[string]string{
		"values":           `{"metric":{` + owner + `,"code":"503"},"values":[[#,"60"]],"values":[[#,"0"]]}`,
		"Values":           `{"metric":{` + owner + `,"code":"503"},"Values":[[#,"60"]]}`,
		"histograms":       `{"metric":{` + owner + `},"Histograms":[[#,{}]]}`,
		"metric":           `{"metric":{` + owner + `,"code":"503"},"metric":{"service":"other"},"values":[[#,"60"]]}`,
		"a label":          `{"metric":{` + owner + `,"code":"503","code":"200"},"values":[[#,"60"]]}`,
		"a label, escaped": `{"metric":{` + owner + `,"code":"503","cod\u0065":"200"},"values":[[#,"60"]]}`,
	}
	for name, result := range results {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, newMetricsServer(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprint(w, strings.ReplaceAll(fmt.Sprintf(around, good+","+result), "#", r.Form.Get("end")))
			}).URL)
			f.Track(target("web", func(t *Target) { t.ConfirmedAt = start.Add(-30 * time.Second) }))
			f.step(time.Minute)
			if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnknown || v.Reason != v1alpha1.ReasonProviderError || v.RampReady {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestUnknownKeysAreIgnored, doubled ones as well: a later version of the API may have them.
func TestUnknownKeysAreIgnored(t *testing.T) {
	f := newFixture(t, newMetricsServer(t, body(`{"new":[{"a":{}}],"new":null,"infos":["x"],"status":"success","data":{"stats":{"value":1,"value":2},"resultType":"vector","analysis":[[1]],"result":[{"metric":{"a":"b"},"extra":"x","value":[T,"0.001"]}]}}`)).URL)
	f.Track(target("web", checksOnly("up")))
	f.step(time.Second)
	if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictHealthy {
		t.Errorf("%+v", v)
	}
}

// zipped answers everything by a text that is compressed.
func zipped(t *testing.T, parts ...io.Reader) http.HandlerFunc {
	t.Helper()
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	if _, err := io.Copy(z, io.MultiReader(parts...)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed.Bytes())
	}
}

// repeated is a text that comes so often that it has about that size.
func repeated(text string, size int) io.Reader {
	text = strings.Repeat(text, 1<<16/len(text))
	parts := make([]io.Reader, size/len(text)+1)
	for i := range parts {
		parts[i] = strings.NewReader(text)
	}
	return io.MultiReader(parts...)
}

const (
	vectorBegins = `{"status":"success","data":{"resultType":"vector","result":[`
	matrixBegins = `{"status":"success","data":{"resultType":"matrix","result":[`
	ends         = `{}]}}`
)

// bombs are answers that are small where they come from.
func bombs(t *testing.T) map[string]http.HandlerFunc {
	t.Helper()
	const size = 40 << 20
	begin := func(text string) io.Reader { return strings.NewReader(text) }
	return map[string]http.HandlerFunc{
		"empty series":      zipped(t, begin(matrixBegins), repeated(`{},`, size), begin(ends)),
		"empty elements":    zipped(t, begin(vectorBegins), repeated(`{},`, 31<<20), begin(ends)),
		"labels":            zipped(t, begin(matrixBegins+`{"metric":{`), repeated(`"a":"b",`, size)),
		"a long label":      zipped(t, begin(matrixBegins+`{"metric":{"a":"`), repeated(`b`, size), begin(`"}}]}}`)),
		"samples":           zipped(t, begin(matrixBegins+`{"metric":{},"values":[`), repeated(`[1,"1"],`, size)),
		"histograms":        zipped(t, begin(matrixBegins+`{"metric":{},"histograms":[`), repeated(`[1,{}],`, size)),
		"blanks":            zipped(t, repeated(` `, size)),
		"blanks inside":     zipped(t, begin(matrixBegins), repeated(` `, size)),
		"an unknown key":    zipped(t, begin(`{"more":[`), repeated(`{},`, size)),
		"unknown keys":      zipped(t, begin(`{`), repeated(`"more":1,`, size)),
		"brackets":          zipped(t, begin(`{"more":`), repeated(`[`, size)),
		"brackets inside":   zipped(t, begin(matrixBegins), repeated(`[`, size)),
		"warnings":          zipped(t, begin(`{"status":"success","warnings":[`), repeated(`"PromQL info: x",`, size)),
		"a long value":      zipped(t, begin(vectorBegins+`{"value":[1,"`), repeated(`1`, size), begin(`"]}]}}`)),
		"a long number":     zipped(t, begin(vectorBegins+`{"value":[`), repeated(`1`, size), begin(`,"1"]}]}}`)),
		"something else":    zipped(t, repeated(`<p>`, size)),
		"a long result":     zipped(t, begin(`{"status":"success","data":{"result":"`), repeated(`x`, size)),
		"an object instead": zipped(t, begin(`{"status":"success","data":{"result":{`), repeated(`"a":1,`, size)),
	}
}

// allocated is how many bytes are allocated meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBombsCostLittle counts the bytes that are allocated for an answer, kept or not.
func TestBombsCostLittle(t *testing.T) {
	twentyChecks := checksOnly("up")
	kinds := map[string]struct {
		change func(*Target)
		most   uint64
	}{
		"preset": {withLatency, 4 << 20},
		"20 checks": {func(t *Target) {
			twentyChecks(t)
			for i := range 19 {
				t.Health.Checks = append(t.Health.Checks, v1alpha1.Check{Name: "own-" + strconv.Itoa(i), Query: "up", Max: t.Health.Checks[0].Max})
			}
		}, 20 << 20},
	}
	for name, bomb := range bombs(t) {
		for kind, k := range kinds {
			t.Run(name+"/"+kind, func(t *testing.T) {
				f := newFixture(t, newMetricsServer(t, bomb).URL)
				f.Track(target("web", k.change))
				began := time.Now()
				bytes := allocated(func() { f.step(timeToVerdict) })
				t.Logf("%d KiB in %s", bytes>>10, time.Since(began).Round(time.Millisecond))
				if v := f.Verdict(key("web")); v.State != v1alpha1.VerdictUnknown || v.RampReady {
					t.Errorf("%+v", v)
				}
				if bytes > k.most {
					t.Errorf("%d KiB were allocated, and %d are right", bytes>>10, k.most>>10)
				}
			})
		}
	}
}

// manyBounds answers with a histogram of so many buckets, which is made before, and requests
// of which some failed.
func manyBounds(at time.Time, bounds int, errors float64) http.HandlerFunc {
	requests := traffic(120, errors)
	var histogram strings.Builder
	histogram.WriteString(matrixBegins)
	for i := range bounds {
		_, _ = fmt.Fprintf(&histogram, `{"metric":{"service":"shop-web-canary-http-80@kubernetesgateway","le":"%d.5"},"values":[[%d,"60"]]},`, i, at.Unix())
	}
	histogram.WriteString(ends)
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Form.Get("query"), "_bucket") {
			_, _ = io.WriteString(w, histogram.String())
			return
		}
		requests(w, r)
	}
}

// TestManyBoundsCostLittle: a histogram of too many buckets is not read, and does not take
// the rest of the evidence away.
func TestManyBoundsCostLittle(t *testing.T) {
	for errors, check := range map[float64]string{120: health.CheckErrorRate, 0: health.CheckLatency} {
		f := newFixture(t, newMetricsServer(t, manyBounds(start.Add(timeToVerdict), 450, errors)).URL)
		f.Track(target("web", withLatency))
		f.step(timeToVerdict)
		v := f.Verdict(key("web"))
		if v.Check != check || v.BreachSince.IsZero() != (errors == 0) || v.RampReady ||
			errors == 0 && (v.State != v1alpha1.VerdictUnknown || !strings.Contains(v.Message, "more than 200 buckets")) {
			t.Errorf("with %v errors: %+v", errors, v)
		}
	}
}

// TestBoundsAreKeptOnlyIfTheyCount: a histogram in which no bucket can decide is not kept
// as a whole for every window.
func TestBoundsAreKeptOnlyIfTheyCount(t *testing.T) {
	f := newFixture(t, newMetricsServer(t, manyBounds(start.Add(timeToVerdict), 150, 0)).URL)
	f.Track(target("web", withLatency))
	f.step(timeToVerdict)
	for _, w := range f.Windows(key("web")) {
		if n := len(w.Canary.Buckets); n > 14 {
			t.Fatalf("%d buckets are kept", n)
		}
	}
}

// TestBoundsByTheThousand end the reading of a reply, which costs the same however many
// there would be.
func TestBoundsByTheThousand(t *testing.T) {
	for _, bounds := range []int{10_000, 80_000} {
		f := newFixture(t, newMetricsServer(t, manyBounds(start.Add(timeToVerdict), bounds, 0)).URL)
		f.Track(target("web", withLatency))
		bytes := allocated(func() { f.step(timeToVerdict) })
		if bytes > 4<<20 {
			t.Errorf("%d bounds: %d KiB were allocated", bounds, bytes>>10)
		}
		if v := f.Verdict(key("web")); v.Reason != v1alpha1.ReasonProviderError || !strings.Contains(v.Message, "more than 3000 series") {
			t.Errorf("%+v", v)
		}
	}
}
