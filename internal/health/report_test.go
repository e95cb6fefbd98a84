package health

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A report says the same as the verdict, and its last evaluation is that of the newest
// window.
func TestPropertyReportAgreesWithTheVerdict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawOpposed(t)
		r := ReportOn(in)
		if diff := cmp.Diff(Evaluate(in), r.Verdict, byValue); diff != "" {
			t.Fatalf("(-verdict +report):\n%s", diff)
		}
		if (r.Ramp.What == "") != r.Verdict.RampReady || (r.Stage.What == "") != r.Verdict.StageReady {
			t.Fatalf("%+v", r)
		}
		windows := in.counted()
		if len(r.Evaluations) != min(len(windows), MaxEvaluations) {
			t.Fatalf("%d evaluations of %d windows", len(r.Evaluations), len(windows))
		}
		if n := len(windows); n > 0 && !r.Evaluations[len(r.Evaluations)-1].End.Equal(windows[n-1].End) {
			t.Fatalf("the last evaluation is of another window")
		}
		if r.Ramp.Requests < 0 || r.Stage.Requests < 0 || r.Ramp.About < 0 || r.Stage.About < 0 || r.Stage.About > 24*time.Hour {
			t.Fatalf("%+v %+v", r.Ramp, r.Stage)
		}
	})
}
