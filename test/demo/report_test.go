package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestRefusedLine(t *testing.T) {
	errors := func(n float64) sample { return sample{tracks: [2]count{canary: {errors: n}}} }
	for name, test := range map[string]struct {
		r    result
		want string
	}{
		"all are errors": {result{gateway: errors(8), client: clientCount{failed: 8}}, ""},
		"some were 4xx":  {result{gateway: errors(8), client: clientCount{failed: 17, refused: 9}}, "9 of those were answers of 4xx, which do not count"},
		"none were 4xx":  {result{client: clientCount{failed: 2, lost: 2}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusedLine(&test.r); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPhaseIsToldWithItsReason(t *testing.T) {
	var out bytes.Buffer
	seen := newObservation(allScenarios[1], &screen{out: &out})
	for version, phase := range []v1alpha1.Phase{v1alpha1.PhaseProgressing, v1alpha1.PhaseRolledBack} {
		rollout := &v1alpha1.WeightedRollout{}
		rollout.Status.Phase, rollout.Status.OutcomeMessage = phase, "error-rate: 7 of 53 requests failed since the share was confirmed"
		seen.rolloutSeen(uint64(version), rollout)
	}
	want := `  payments phase  RolledBack: error-rate: 7 of 53 requests failed since
                         the share was confirmed
`
	_, told, _ := strings.Cut(out.String(), ":") // behind the minutes
	if diff := cmp.Diff(want, told[2:]); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// TestRetryLinesWork gives the lines to a shell in which k is a kubectl that shows what
// it is told.
func TestRetryLinesWork(t *testing.T) {
	lines := retryLines("payments")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > defaultWidth {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	text := strings.TrimPrefix(strings.Join(lines, "\n"), "  retry")
	const k = `k() { case $1 in get) printf 3 ;; *) printf '%s\n' "$@" ;; esac; }` + "\n"
	out, err := exec.CommandContext(t.Context(), "sh", "-c", k+text).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	told := strings.Split(strings.TrimSpace(string(out)), "\n")
	if diff := cmp.Diff([]string{"annotate", "wr", "payments", "-n", "shop", "--overwrite"}, told[:len(told)-1]); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	value, ok := strings.CutPrefix(told[len(told)-1], v1alpha1.CommandAnnotation+"=")
	command := v1alpha1.Command{}
	if err := json.Unmarshal([]byte(value), &command); !ok || err != nil {
		t.Fatalf("%q is no command: %v", told[len(told)-1], err)
	}
	if command.ID == "" || command.Verb != v1alpha1.VerbRetry || command.Attempt != 3 {
		t.Errorf("unexpected command %+v", command)
	}
}
