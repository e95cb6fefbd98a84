package simulate

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func lineOfText(t *testing.T, start float64, steps ...Step[v1alpha1.Decimal]) timeline {
	t.Helper()
	l, err := line("values", start, steps, decimal)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTimeline(t *testing.T) {
	type step = Step[v1alpha1.Decimal]
	for _, tc := range []struct {
		name  string
		steps []step
		// at gives values at times.
		at map[time.Duration]float64
		// areas are integrals over [from, to] in values times seconds.
		areas map[[2]time.Duration]float64
	}{
		{
			name:  "without steps the start holds",
			at:    map[time.Duration]float64{0: 10, time.Hour: 10},
			areas: map[[2]time.Duration]float64{{0, time.Minute}: 600, {time.Minute, time.Minute}: 0},
		},
		{
			name:  "a step at 0 replaces the start",
			steps: []step{{At: "0s", Value: "3"}},
			at:    map[time.Duration]float64{0: 3, time.Hour: 3},
			areas: map[[2]time.Duration]float64{{0, 10 * time.Second}: 30},
		},
		{
			name:  "a later step jumps",
			steps: []step{{At: "1m", Value: "20"}},
			at:    map[time.Duration]float64{0: 10, time.Minute - 1: 10, time.Minute: 20, time.Hour: 20},
			areas: map[[2]time.Duration]float64{{50 * time.Second, 70 * time.Second}: 300},
		},
		{
			name:  "a slope is straight",
			steps: []step{{At: "1m", Value: "20", Over: "10s"}},
			at: map[time.Duration]float64{
				time.Minute: 10, 65 * time.Second: 15, 70 * time.Second: 20, time.Hour: 20,
			},
			areas: map[[2]time.Duration]float64{{time.Minute, 70 * time.Second}: 150, {65 * time.Second, 70 * time.Second}: 87.5},
		},
		{
			name:  "a spike goes back",
			steps: []step{{At: "1m", Value: "50", For: "10s"}, {At: "2m", Value: "20"}},
			at: map[time.Duration]float64{
				59 * time.Second: 10, time.Minute: 50, 69 * time.Second: 50, 70 * time.Second: 10, 2 * time.Minute: 20,
			},
			areas: map[[2]time.Duration]float64{{0, 2 * time.Minute}: 110*10 + 10*50},
		},
		{
			name:  "a spike with slopes goes back by the same slope",
			steps: []step{{At: "1m", Value: "30", Over: "4s", For: "10s"}},
			at: map[time.Duration]float64{
				62 * time.Second: 20, 64 * time.Second: 30, 70 * time.Second: 30, 72 * time.Second: 20, 74 * time.Second: 10,
			},
			areas: map[[2]time.Duration]float64{{time.Minute, 74 * time.Second}: 80 + 180 + 80},
		},
		{
			name:  "a spike at 0 goes back to the start",
			steps: []step{{At: "0s", Value: "50", For: "10s"}},
			at:    map[time.Duration]float64{0: 50, 9 * time.Second: 50, 10 * time.Second: 10},
		},
		{
			name:  "a step may begin where the one before ends",
			steps: []step{{At: "1m", Value: "20", Over: "1m"}, {At: "2m", Value: "0", Over: "1m"}},
			at:    map[time.Duration]float64{90 * time.Second: 15, 2 * time.Minute: 20, 150 * time.Second: 10, 3 * time.Minute: 0},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := lineOfText(t, 10, tc.steps...)
			for at, want := range tc.at {
				if got := l.at(at); math.Abs(got-want) > 1e-9 {
					t.Errorf("at %s it is %g, not %g", at, got, want)
				}
			}
			for span, want := range tc.areas {
				if got := l.area(span[0], span[1]); math.Abs(got-want) > 1e-6 {
					t.Errorf("the area over %v is %g, not %g", span, got, want)
				}
			}
		})
	}
}

func TestTimelineErrors(t *testing.T) {
	type step = Step[v1alpha1.Decimal]
	for _, tc := range []struct {
		name  string
		steps []step
		want  string
	}{
		{"no time", []step{{Value: "1"}}, "values[0].at is missing: give a time"},
		{"no duration", []step{{At: "soon", Value: "1"}}, `values[0].at: "soon" is no duration`},
		{"too late", []step{{At: "73h", Value: "1"}}, "values[0].at is 73h0m0s: it must be from 0s to 72h0m0s"},
		{"too fine", []step{{At: "10us", Value: "1"}}, "in whole milliseconds"},
		{"no value", []step{{At: "1s"}}, "values[0].value is missing: give a number"},
		{"an empty slope", []step{{At: "1s", Value: "1", Over: "0s"}}, "values[0].over is 0: leave it out"},
		{"out of order", []step{{At: "2s", Value: "1"}, {At: "1s", Value: "2"}}, "values[1].at: it begins at 1s, before"},
		{"twice", []step{{At: "2s", Value: "1"}, {At: "2s", Value: "2"}}, "values[1].at: it begins at 2s, before"},
		{"in a slope", []step{{At: "2s", Value: "1", Over: "5s"}, {At: "6s", Value: "2"}}, "over, at 7s"},
		{"in a spike", []step{{At: "2s", Value: "1", For: "5s"}, {At: "6s", Value: "2"}}, "over, at 7s"},
		{"a slope longer than its spike", []step{{At: "2s", Value: "1", For: "1s", Over: "2s"}}, "shorten over"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := line("values", 0, tc.steps, decimal)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v; it should say %q", err, tc.want)
			}
		})
	}
}

// TestTimelineAreas shows on random timelines that areas add up, and that a mean lies
// between the lowest and the highest value.
func TestTimelineAreas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var changes []change
		at := time.Duration(0)
		for range rapid.IntRange(0, 5).Draw(t, "steps") {
			c := change{
				at:    at + seconds(t, "gap", 1, 100),
				over:  seconds(t, "over", 0, 50),
				value: rapid.Float64Range(-5, 5).Draw(t, "value"),
			}
			if rapid.Bool().Draw(t, "spike") {
				c.lasts = c.over + seconds(t, "for", 1, 50)
			}
			changes, at = append(changes, c), c.end()
		}
		l, err := newTimeline("values", 1, changes)
		if err != nil {
			t.Fatal(err)
		}
		from := seconds(t, "from", 0, 300)
		middle := from + seconds(t, "middle", 0, 300)
		to := middle + seconds(t, "to", 0, 300)
		if whole, parts := l.area(from, to), l.area(from, middle)+l.area(middle, to); math.Abs(whole-parts) > 1e-6 {
			t.Fatalf("the area %g is not the sum of its parts, %g", whole, parts)
		}
		low, high := 1.0, 1.0
		for _, c := range changes {
			low, high = min(low, c.value), max(high, c.value)
		}
		if mean := l.mean(from, to); mean < low-1e-9 || mean > high+1e-9 {
			t.Fatalf("the mean %g is not from %g to %g", mean, low, high)
		}
	})
}

func seconds(t *rapid.T, what string, low, high int) time.Duration {
	return time.Duration(rapid.IntRange(low, high).Draw(t, what)) * time.Second
}
