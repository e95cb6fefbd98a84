package cli

import (
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/internal/simulate"
)

// TestProgress shows when the line is written, and that it is taken away.
func TestProgress(t *testing.T) {
	var out strings.Builder
	now := time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)
	p := &progress{w: &out, hint: "; hint", clock: func() time.Time { return now }, due: now.Add(patience)}
	for i, step := range []struct {
		after time.Duration
		want  string
	}{
		{patience - 1, ""},
		{1, "\rSimulated so far: 1:00:00; hint"},
		{time.Second, ""},
		{time.Second, "\rSimulated so far: 3:00:00; hint"},
	} {
		now = now.Add(step.after)
		p.at(simulate.Elapsed(i) * simulate.Elapsed(time.Hour))
		if got := out.String(); got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
		out.Reset()
	}
	p.clear()
	if got := out.String(); got != "\r\x1b[K" {
		t.Errorf("the line is taken away by %q", got)
	}
}

// TestProgressIsQuiet shows that nothing is written where there is no terminal, or no
// time was taken.
func TestProgressIsQuiet(t *testing.T) {
	var out strings.Builder
	o := &SimulateOptions{IOStreams: genericiooptions.IOStreams{ErrOut: &out}}
	p := o.progress()
	p.due = time.Time{}
	p.at(0)
	p.clear()
	quick := &progress{w: &out, clock: time.Now, due: time.Now().Add(time.Hour)}
	quick.at(0)
	quick.clear()
	if out.Len() > 0 {
		t.Errorf("it writes %q", out.String())
	}
}
