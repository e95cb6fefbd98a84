package cli

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

var nine = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

func micro(at time.Time) *metav1.MicroTime { return new(metav1.NewMicroTime(at)) }

// halfway is a rollout in its fourth stage, with live evidence.
func halfway() *view {
	wr := planned(v1alpha1.OutcomeInProgress, 3, "1", "5", "10", "20", "50")
	wr.Namespace, wr.Name, wr.UID, wr.Generation = "shop", "checkout", "its-uid", 3
	wr.Spec.Health = &v1alpha1.Health{Latency: &v1alpha1.Latency{Percentile: "99"}}
	st := &wr.Status
	st.ObservedGeneration, st.Phase, st.Revision, st.Attempt = 3, v1alpha1.PhaseProgressing, "2.4.1", 2
	st.Stage.Position, st.Stage.Weight = "4/6", "20"
	st.Share = v1alpha1.ShareStatus{Desired: new(v1alpha1.Percent("20")), ConfirmedAt: micro(nine.Add(-12 * time.Minute))}
	st.NextTransitionTime = new(metav1.NewTime(nine.Add(18 * time.Minute)))
	for _, kind := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionReady} {
		st.Conditions = append(st.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSoaking, Message: "the soak of stage 4/6 runs"})
	}
	v := &view{rollout: wr, document: &live.Document{
		At: nine.Add(-3 * time.Second), Attempt: 2, Subject: "canary", Traffic: &live.Traffic{Canary: 2040, Stable: 7960},
		Verdict: live.Verdict{State: "Healthy", Reason: "ChecksPassed", Message: "every check passes on 2040 requests"},
		Ramp:    live.Awaited{Open: true}, Stage: live.Awaited{Open: true}, Comparison: &live.Comparison{Evidence: 0.4321, Proof: 20},
	}}
	for i := range 48 {
		slow := 0.180 + 0.004*float64(i%7)
		e := live.Evaluation{Stable: &live.Numbers{Requests: 600, Errors: float64(i % 3), QuantileSeconds: new(slow)}}
		if i != 20 { // a window in which the canary could not be counted
			e.Canary = &live.Numbers{Requests: 150, Errors: float64(i % 2), QuantileSeconds: new(slow * 1.1)}
		}
		v.document.Evaluations = append(v.document.Evaluations, e)
	}
	for i, note := range []string{"AttemptStarted: attempt 2 of revision \"2.4.1\" starts at 0 percent", "StageStarted: stage 3/6 begins: on the way to 10 percent", "VerdictChanged: verdict Degraded (AboveTarget): the error rate of 0.9 percent is above its target", "ShareRaised: the canary's share goes from 16 to 20 percent in stage 4/6"} {
		reason, text, _ := strings.Cut(note, ": ")
		e := eventsv1.Event{Reason: reason, Note: text, Type: "Normal", EventTime: *micro(nine.Add(time.Duration(i-4) * 13 * time.Minute))}
		if reason == "VerdictChanged" {
			e.Type = "Warning"
		}
		v.events = append(v.events, e)
	}
	return v
}

// rolledBack is one that has ended, without live evidence.
func rolledBack() *view {
	v := halfway()
	v.document, v.documentErr = nil, errors.New("no right to ask the controller through the API server: have the Role bound to you")
	st := &v.rollout.Status
	st.Phase, st.Outcome, st.OutcomeReason, st.OutcomeMessage = v1alpha1.PhaseRolledBack, v1alpha1.OutcomeRolledBack, v1alpha1.ReasonUnhealthy, "error-rate: 9 of 90 requests failed, 10 percent, and 1 percent may"
	st.Share, st.NextTransitionTime = v1alpha1.ShareStatus{Desired: new(v1alpha1.Percent("0")), Observed: new(v1alpha1.Percent("0")), ConfirmedAt: micro(nine.Add(-time.Minute))}, nil
	st.Verdict = &v1alpha1.VerdictStatus{State: v1alpha1.VerdictUnhealthy, Reason: v1alpha1.ReasonBreach, Message: "error-rate: 9 of 90 requests failed"}
	st.History = []v1alpha1.AttemptRecord{{Attempt: 2, EndedAt: *micro(nine.Add(-2 * time.Minute))}}
	st.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUnhealthy, Message: "rolled back: error-rate: 9 of 90 requests failed. Set another revision, or give the retry command"}}
	return v
}

// fresh is one that the controller has not seen yet.
func fresh() *view {
	wr := planned("", 0, "1", "50")
	wr.Namespace, wr.Name, wr.Status = "shop", "checkout", v1alpha1.WeightedRolloutStatus{}
	return &view{rollout: wr, documentErr: errors.New("no evidence is gathered"), trouble: errors.New("connection refused")}
}

// TestFrames: what watch draws, on screens of several sizes.
func TestFrames(t *testing.T) {
	for name, test := range map[string]struct {
		v             *view
		width, height int
	}{
		"watch-80x24":       {halfway(), 80, 24},
		"watch-120x40":      {halfway(), 120, 40},
		"watch-40x20":       {halfway(), 40, 20},
		"watch-rolled-back": {rolledBack(), 80, 24},
		"watch-fresh":       {fresh(), 60, 20},
	} {
		t.Run(name, func(t *testing.T) {
			frame := watchFrame(test.v, test.width, test.height, nine, false)
			compare(t, name+".golden", strings.Join(frame, "\n")+"\n")
			painted := watchFrame(test.v, test.width, test.height, nine, true)
			for i := range painted {
				if got := unpainted(painted[i]); strings.TrimRight(got, " ") != frame[i] {
					t.Errorf("in colour, line %d is %q, not %q", i, got, frame[i])
				}
			}
		})
	}
}

// TestStatusScreens: what status prints.
func TestStatusScreens(t *testing.T) {
	for name, v := range map[string]*view{"status-live": halfway(), "status-rolled-back": rolledBack(), "status-fresh": fresh()} {
		s := &screen{width: 100}
		drawStatus(s, v, reportOn(v, nine), nine)
		compare(t, name+".golden", s.text.String())
	}
}

// TestVerdictAfterTheEnd: what the controller gathers after the end of an attempt is not
// what it was rolled back for.
func TestVerdictAfterTheEnd(t *testing.T) {
	v := rolledBack()
	v.documentErr, v.document = nil, &live.Document{Attempt: 2, Verdict: live.Verdict{State: "Unknown", Reason: "AwaitingWindow", Message: "nothing is measured"}}
	s := &screen{width: 100}
	drawStatus(s, v, reportOn(v, nine), nine)
	var plainly strings.Builder
	if err := (&lines{out: &plainly}).show(v, nine); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"status": s.text.String(), "watch": strings.Join(watchFrame(v, 100, 30, nine, false), "\n"), "watch --plain": plainly.String()} {
		if !strings.Contains(text, "Unhealthy") || strings.Contains(text, "Unknown") || strings.Contains(text, "AwaitingWindow") {
			t.Errorf("%s says\n%s", name, text)
		}
	}
	v.rollout.Status.Outcome = v1alpha1.OutcomeInProgress
	if state, _ := v.verdictWords(); state != "Unknown" {
		t.Errorf("under way the verdict is %s", state)
	}
}

// TestNoTracks: why there is nothing to draw of the two versions.
func TestNoTracks(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*view)
		says   string
	}{
		"no right":   {func(v *view) { v.document, v.documentErr = nil, errors.New("no right") }, "The live evidence cannot be read: no right"},
		"not yet":    {func(v *view) { v.document = nil }, "has not come yet"},
		"none":       {func(v *view) { v.document.Evaluations = nil }, "No evaluation at this share yet."},
		"at the end": {func(v *view) { v.document.Evaluations, v.rollout.Status.Outcome = nil, v1alpha1.OutcomeRolledBack }, "no attempt is under way"},
	} {
		v := halfway()
		test.change(v)
		if text := strings.Join(watchFrame(v, 80, 24, nine, false), "\n"); !strings.Contains(text, test.says) {
			t.Errorf("%s: it does not say %q:\n%s", name, test.says, text)
		}
	}
}

// TestAdvice: a stopped rollout is resumed, and one that is rolled back tried again.
func TestAdvice(t *testing.T) {
	over, stopped, silent, returning := rolledBack().rollout, rolledBack().rollout, rolledBack().rollout, rolledBack().rollout
	stopped.Status.Outcome, stopped.Status.Pause = v1alpha1.OutcomeInProgress, &v1alpha1.PauseStatus{}
	returning.Status.Outcome, returning.Status.Pause = v1alpha1.OutcomeReturning, &v1alpha1.PauseStatus{}
	silent.Status.Outcome, silent.Status.Pause = v1alpha1.OutcomeInProgress, &v1alpha1.PauseStatus{}
	silent.Status.Conditions[0].Reason = v1alpha1.ReasonNoData
	for wr, want := range map[*v1alpha1.WeightedRollout]string{over: "retry", stopped: "resume", silent: "resume", returning: "resume"} {
		do := asCommand(situate(wr, nine).Do, wr)
		if !strings.HasSuffix(do, ": kubectl weightedrollout "+want+" checkout -n shop") || strings.Contains(do, "retry") == strings.Contains(do, "resume") {
			t.Errorf("want %s, it says %q", want, do)
		}
	}
	if do := situate(returning, nine).Do; !strings.HasPrefix(do, "repair stable;") {
		t.Errorf("stable is unhealthy, it says %q", do)
	}
}

// TestAdviceForAStage: the line names the stage that it is for.
func TestAdviceForAStage(t *testing.T) {
	wr := halfway().rollout
	wr.Spec.Plan.Stages[3].Approval = v1alpha1.ApprovalRequired
	for i := range wr.Status.Conditions {
		wr.Status.Conditions[i].Reason = v1alpha1.ReasonAwaitingApproval
	}
	if got, want := asCommand(situate(wr, nine).Do, wr), "give the command approve: kubectl weightedrollout approve checkout -n shop --stage 4/6"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// compare compares a text with a file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got); run the test with -update if this is right:\n%s", file, diff)
	}
}

// TestFramesKeepTheirSize: whatever is known, a frame fills its screen and no more, and
// moves no cursor.
func TestFramesKeepTheirSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([]func() *view{halfway, rolledBack, fresh}).Draw(t, "view")()
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a 版🚀한\u0301…")))).Draw(t, "text")
		v.rollout.Status.Revision = text
		for i := range v.rollout.Status.Conditions {
			v.rollout.Status.Conditions[i].Message = text
		}
		if v.document != nil {
			v.document.Verdict.Message = text
			v.document.Evaluations = v.document.Evaluations[:rapid.IntRange(0, 48).Draw(t, "evaluations")]
		}
		for i := range v.events {
			v.events[i].Note = text
		}
		width, height := rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 60).Draw(t, "height")
		frame := watchFrame(v, width, height, nine, rapid.Bool().Draw(t, "color"))
		if len(frame) != height {
			t.Fatalf("a frame of %d lines on a screen of %d", len(frame), height)
		}
		for _, line := range frame {
			bare := unpainted(line)
			if n := cells(bare); n > width {
				t.Fatalf("a line of %d characters on a screen of %d: %q", n, width, bare)
			}
			if clean(bare) != bare {
				t.Fatalf("a line moves the cursor: %q", bare)
			}
		}
	})
}

// TestWaitForQuit: q ends it, and so does the interrupt key; others do not.
func TestWaitForQuit(t *testing.T) {
	for keys, quits := range map[string]bool{"q": true, "xQ": true, "\x03": true, "x\x1b[A": false, "": false} {
		quit := make(chan struct{})
		waitForQuit(strings.NewReader(keys), quit)
		select {
		case <-quit:
			if !quits {
				t.Errorf("%q quits", keys)
			}
		default:
			if quits {
				t.Errorf("%q does not quit", keys)
			}
		}
	}
}

// pressed is a display at which somebody has pressed q.
type pressed struct{ shown int }

func (p *pressed) show(*view, time.Time) error { p.shown++; return nil }
func (p *pressed) close()                      {}
func (p *pressed) keys() <-chan struct{} {
	quit := make(chan struct{})
	close(quit)
	return quit
}

// TestWatchEndedByAPerson: whoever asks for the outcome by the exit code is not told that
// all is well when nothing has ended.
func TestWatchEndedByAPerson(t *testing.T) {
	for exit, fails := range map[bool]bool{false: false, true: true} {
		o, d := &WatchOptions{exit: exit, now: func() time.Time { return nine }}, &pressed{}
		end, err := o.loop(t.Context(), d, nil, halfway())
		if end != nil || (err != nil) != fails || d.shown != 1 {
			t.Errorf("with exit %t: %+v, %v, shown %d times", exit, end, err, d.shown)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := o.loop(ctx, &lines{out: io.Discard}, nil, halfway()); (err != nil) != fails {
			t.Errorf("interrupted, with exit %t: %v", exit, err)
		}
	}
}

// TestOverdraw: a frame is written over the one before, without a flicker in between.
func TestOverdraw(t *testing.T) {
	if got, want := overdraw([]string{"a", "b"}), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
