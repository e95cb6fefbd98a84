package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

func TestCells(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "äöü": 3, "日本語": 6, "한글": 4, "ＡＢ": 4, "ｱｲ": 2, "🚀": 2, "e\u0301": 1, "█░▁✓›…–": 7} {
		if got := cells(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text string
		room int
		want string
	}{
		{"release", 7, "release"}, {"release", 6, "relea…"}, {"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"},
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"}, {"abc", 0, "…"}, {"abc", -1, "…"},
	} {
		if got := cut(test.text, test.room); got != test.want {
			t.Errorf("cut(%q, %d) is %q, want %q", test.text, test.room, got, test.want)
		}
	}
}

// TestWideTable: columns stand straight, and lines fit, whatever is in them.
func TestWideTable(t *testing.T) {
	s := &screen{width: 16}
	s.table([]column{{"NAME", false}, {"N", true}, {"NOTE", false}}, [][]string{{"日本", "1", "x"}, {"e\u0301", "12", "長い話だ"}, {"a", "1", "too long"}})
	const want = "NAME   N  NOTE\n" + "日本   1  x\n" + "e\u0301     12  長い…\n" + "a      1  too l…\n"
	if diff := cmp.Diff(want, s.text.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLongRevision: a revision is any text, and leaves room for the other columns.
func TestLongRevision(t *testing.T) {
	v := halfway()
	v.rollout.Status.Revision = strings.Repeat("版", 200)
	v.rollout.CreationTimestamp.Time = nine
	got, past := &screen{width: 120}, &screen{width: 120}
	drawRollouts(got, []v1alpha1.WeightedRollout{*v.rollout}, true, false, nine)
	drawAttempts(past, v.rollout, attempts(v.rollout), nine)
	const short = "版版版版版版版版版版版…"
	for _, text := range []string{got.text.String(), past.text.String()} {
		if !strings.Contains(text, short+"  ") || strings.Contains(text, short+"…") {
			t.Errorf("the revision is not short:\n%s", text)
		}
	}
	if !strings.Contains(got.text.String(), "  0s\n") {
		t.Errorf("its age is not told:\n%s", got.text.String())
	}
}
