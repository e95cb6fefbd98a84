package cli

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// drawResult draws a simulation's result that need not make sense.
func drawResult(t *rapid.T) *simulate.Result {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "<a href=\"x\">&amp;]]>", "\x1b[2J\x00", "rolled back: no."}))
	at := rapid.Custom(func(t *rapid.T) simulate.Elapsed {
		return simulate.Elapsed(rapid.Int64Range(0, int64(80*time.Hour)).Draw(t, "at"))
	})
	share := rapid.Float64Range(0, 100)
	number := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e9))
	track := rapid.Custom(func(t *rapid.T) simulate.TrackSample {
		requests := number.Draw(t, "requests")
		return simulate.TrackSample{
			Traffic: simulate.Traffic{Requests: requests, Failed: requests * rapid.Float64Range(0, 1).Draw(t, "failed")},
			Latency: rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 600)).Draw(t, "latency"),
		}
	})
	r := &simulate.Result{Name: text.Draw(t, "name"), Picker: "smooth"}
	r.Outcome = simulate.Outcome{
		Phase:    rapid.SampledFrom(endings).Draw(t, "phase"),
		Ending:   rapid.SampledFrom([]simulate.Ending{simulate.EndSettled, simulate.EndDuration, simulate.EndLimit}).Draw(t, "ending"),
		Revision: text.Draw(t, "revision"), Message: text.Draw(t, "message"), Duration: at.Draw(t, "duration"), Share: share.Draw(t, "share"),
	}
	for range rapid.IntRange(0, 5).Draw(t, "adjustments") {
		r.Adjustments = append(r.Adjustments, simulate.Adjustment{At: at.Draw(t, "at"), To: share.Draw(t, "to")})
	}
	for range rapid.IntRange(0, 5).Draw(t, "samples") {
		r.Samples = append(r.Samples, simulate.Sample{
			At: at.Draw(t, "at"), Stable: track.Draw(t, "stable"), Canary: track.Draw(t, "canary"),
			Verdict: simulate.Verdict{State: v1alpha1.VerdictState(rapid.SampledFrom([]string{"", "Healthy", "Degraded", "Unhealthy", "Unknown"}).Draw(t, "state"))},
		})
	}
	for range rapid.IntRange(0, 80).Draw(t, "events") {
		r.Events = append(r.Events, simulate.Event{
			At: at.Draw(t, "at"), Source: rapid.SampledFrom([]simulate.Source{simulate.FromController, simulate.FromScenario}).Draw(t, "source"),
			Warning: rapid.Bool().Draw(t, "warning"), Reason: text.Draw(t, "reason"), Message: text.Draw(t, "message"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "stages") {
		r.Stages = append(r.Stages, simulate.Stage{Attempt: rapid.Int64Range(1, 2).Draw(t, "attempt"), Position: "1/2"})
	}
	r.Notes = rapid.SliceOfN(text, 0, 2).Draw(t, "notes")
	return r
}

// TestDrawingOfAnything shows that whatever the result, the terminal's lines keep
// their width, colours are the only difference that colours make, and the picture is
// well-formed.
func TestDrawingOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawResult(t)
		width := rapid.IntRange(minWidth, 160).Draw(t, "width")
		l := limits{"p99", rapid.SampledFrom([]float64{0, 1}).Draw(t, "limit"), rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "max")}
		s, colored := &screen{width: width}, &screen{width: width, color: true}
		drawSimulation(s, r, l)
		drawSimulation(colored, r, l)
		for line := range strings.Lines(s.text.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := cells(line); n > width {
				t.Fatalf("a line of %d characters on a screen of %d: %q", n, width, line)
			}
			if clean(line) != line {
				t.Fatalf("a line moves the cursor: %q", line)
			}
		}
		if diff := cmp.Diff(trimmed(s.text.String()), trimmed(escapes.ReplaceAllString(colored.text.String(), ""))); diff != "" {
			t.Fatalf("(-plain +coloured):\n%s", diff)
		}
		wellFormed(t, svgOf(r, l))
	})
}

// trimmed takes the spaces from the ends of lines, which have no colour.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// wellFormed reads a picture as XML, and looks for numbers that are none.
func wellFormed(t interface{ Fatalf(string, ...any) }, picture []byte) {
	decoder := xml.NewDecoder(strings.NewReader(string(picture)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, picture)
		}
		if start, ok := token.(xml.StartElement); ok {
			for _, a := range start.Attr {
				if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
					t.Fatalf("<%s %s=%q>", start.Name.Local, a.Name.Local, a.Value)
				}
			}
		}
	}
}

// TestPictureShowsEverything looks for what a reader needs in a picture.
func TestPictureShowsEverything(t *testing.T) {
	at := func(minutes int) simulate.Elapsed { return simulate.Elapsed(time.Duration(minutes) * time.Minute) }
	track := func(requests, failed, latency float64) simulate.TrackSample {
		return simulate.TrackSample{Traffic: simulate.Traffic{Requests: requests, Failed: failed}, Latency: latency}
	}
	r := &simulate.Result{
		Name:        "shop & co",
		Outcome:     simulate.Outcome{Phase: v1alpha1.PhaseRolledBack, Message: "rolled back: too slow", ReachedAt: at(40), Duration: at(60)},
		Adjustments: []simulate.Adjustment{{At: at(10), To: 20}, {At: at(40), From: 20}},
		Events: []simulate.Event{
			{At: at(10), Source: simulate.FromController, Reason: v1alpha1.ReasonShareRaised, Message: "not shown"},
			{At: at(30), Source: simulate.FromScenario, Message: "the metrics are away"},
			{At: at(40), Source: simulate.FromController, Warning: true, Reason: v1alpha1.ReasonRolledBack, Message: "too slow"},
		},
	}
	for i := 1; i <= 60; i++ {
		s := simulate.Sample{At: at(i), Stable: track(8000, 8, 0.1), Verdict: simulate.Verdict{State: v1alpha1.VerdictHealthy}}
		if i > 10 && i <= 40 {
			s.Canary = track(2000, 20, 0.2)
		}
		r.Samples = append(r.Samples, s)
	}
	picture := string(svgOf(r, limits{"p95", 2, 0.3}))
	for _, want := range []string{
		"<title>Simulation of rollout &#34;shop &amp; co&#34;</title>", "Rolled back after 0:40:00: too slow.", "Canary&#39;s share of the traffic", "by weight", "by requests",
		"verdict", "Healthy", "Degraded", "Unhealthy", "Unknown", "Failed requests", "limit 2 %", "Response time, p95 by histogram<", ">Failed requests<", "limit 300 ms", "stable", "canary",
		"h:mm", ">0:30<", ">20 %<", ">300 ms<", "scenario: the metrics are away", "RolledBack: too slow", ">1</text>", ">2</text>",
	} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture does not show %q", want)
		}
	}
	if strings.Contains(picture, "not shown") {
		t.Error("the picture marks a raise of the share, which its line shows")
	}
	// 20 percent of a scale that ends there, from minute 10 to 40 of 60.
	steps := fmt.Sprintf("H%sV%sH%sV%s", at10(226), at10(p20(picture)), at10(676), "")
	if !strings.Contains(picture, steps) {
		t.Errorf("the picture does not step at minutes 10 and 40: %s", steps)
	}
}

// TestPictureMarksWhatIsOffTheScale shows that an outage does not look like what the
// scale ends with: it is marked, and the title says how high it was.
func TestPictureMarksWhatIsOffTheScale(t *testing.T) {
	picture := func(failed float64) string {
		r := &simulate.Result{Outcome: simulate.Outcome{Duration: simulate.Elapsed(time.Hour)}}
		for i := 1; i <= 60; i++ {
			s := simulate.Sample{At: simulate.Elapsed(time.Duration(i) * time.Minute)}
			s.Stable.Requests, s.Canary.Requests = 8000, 2000
			if i > 20 && i <= 30 || i > 40 && i <= 50 {
				s.Canary.Failed = failed
			}
			r.Samples = append(r.Samples, s)
		}
		return string(svgOf(r, limits{"p99", 1, 0}))
	}
	const triangle = "l-5 8h10z"
	within := picture(100) // 5 %, where the scale ends
	if strings.Contains(within, triangle) || strings.Contains(within, "off the scale") {
		t.Error("what the scale shows is marked as being beyond it")
	}
	outage := picture(2000)
	if n := strings.Count(outage, triangle+`" fill="`+canaryColor); n != 2 || strings.Count(outage, triangle) != n {
		t.Errorf("%d marks of the canary, want one for each of two outages", n)
	}
	for _, want := range []string{
		"Failed requests (triangles are off the scale, up to 100 %)",
		// From minute 20 to 30 of an hour that is 900 wide.
		fmt.Sprintf(`<path d="M%s `, at(marginLeft+900*25.0/60)), fmt.Sprintf(`<path d="M%s `, at(marginLeft+900*45.0/60)),
	} {
		if !strings.Contains(outage, want) {
			t.Errorf("the picture does not show %q", want)
		}
	}
}

// TestQuietChanges shows what is said of the changes of the share that are not listed.
func TestQuietChanges(t *testing.T) {
	for n, want := range map[int]string{
		0: "", 1: "1 change of the share is not listed; -o json has it.\n", 2: "2 changes of the share are not listed; -o json has them all.\n",
	} {
		r := &simulate.Result{}
		for range n {
			r.Events = append(r.Events, simulate.Event{Source: simulate.FromController, Reason: v1alpha1.ReasonShareRaised})
		}
		s := &screen{width: 100}
		drawEvents(s, r, marked(r))
		if got := s.text.String(); got != want {
			t.Errorf("%d changes: %q, want %q", n, got, want)
		}
	}
}

func at10(f float64) string { return at(f) }

// p20 finds the height of the topmost line of the grid.
func p20(picture string) float64 {
	var y float64
	top := math.Inf(1)
	for line := range strings.Lines(picture) {
		if _, err := fmt.Sscanf(line, `<line x1="76" y1="%f"`, &y); err == nil && strings.Contains(line, gridColor) && strings.Contains(line, `x2="976"`) {
			top = min(top, y)
		}
	}
	return top
}

// TestBuckets shows how samples are sorted into parts of the time.
func TestBuckets(t *testing.T) {
	at := func(seconds int) simulate.Elapsed { return simulate.Elapsed(time.Duration(seconds) * time.Second) }
	sample := func(seconds int, requests float64, state v1alpha1.VerdictState) simulate.Sample {
		return simulate.Sample{
			At: at(seconds), Canary: simulate.TrackSample{Traffic: simulate.Traffic{Requests: requests, Failed: requests / 10}, Latency: requests / 1000},
			Verdict: simulate.Verdict{State: state},
		}
	}
	r := &simulate.Result{
		Outcome:     simulate.Outcome{Duration: at(40)},
		Adjustments: []simulate.Adjustment{{At: at(11), To: 5}, {At: at(12), To: 7}, {At: at(40), To: 9}},
		Samples: []simulate.Sample{
			sample(5, 0, v1alpha1.VerdictUnknown), sample(10, 0, v1alpha1.VerdictUnknown),
			sample(15, 100, v1alpha1.VerdictDegraded), sample(20, 300, v1alpha1.VerdictHealthy), sample(40, 50, v1alpha1.VerdictUnhealthy),
		},
	}
	type row struct {
		Share, Requests, Failed, Slow float64
		State                         v1alpha1.VerdictState
	}
	var got []row
	for _, b := range buckets(r, 4) {
		got = append(got, row{b.share, b.canary.traffic.Requests, b.canary.failed, b.canary.slow, b.state})
	}
	want := []row{
		{0, 0, -1, -1, v1alpha1.VerdictUnknown},
		{7, 400, 10, 0.3, v1alpha1.VerdictDegraded},
		{7, 50, 10, 0.05, v1alpha1.VerdictUnhealthy}, // the next sample is about this time as well
		{9, 50, 10, 0.05, v1alpha1.VerdictUnhealthy},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMarkersDoNotOverlap shows that no marker of an event covers another.
func TestMarkersDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := picture{whole: 1000}
		var last int64
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			last += rapid.Int64Range(0, 60).Draw(t, "later")
			p.events = append(p.events, event{Event: simulate.Event{At: simulate.Elapsed(min(last, 1000))}})
		}
		a := area{left: marginLeft, right: pictureWidth - marginRight, whole: p.whole}
		rows := p.rows()
		for i := range rows {
			for j := range i {
				if d := math.Abs(a.x(float64(p.events[i].At)) - a.x(float64(p.events[j].At))); rows[i] == rows[j] && d < markerSize {
					t.Fatalf("events %d and %d are %g apart in row %d", i, j, d, rows[i])
				}
			}
		}
	})
}
