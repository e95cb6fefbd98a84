package rollout

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// TestEventsOfOneReason are one: Kubernetes would keep the first one's text only.
func TestEventsOfOneReason(t *testing.T) {
	d := &draft{}
	d.event(false, "Scaled", "%s goes to %d", "a", 2)
	d.event(true, "Scaled", "too far")
	d.event(false, "StageStarted", "stage 1/2")
	d.event(false, "Scaled", "%s goes to %d", "b", 3)
	want := []Event{
		{Reason: "Scaled", Message: "a goes to 2; b goes to 3"},
		{Warning: true, Reason: "Scaled", Message: "too far"},
		{Reason: "StageStarted", Message: "stage 1/2"},
	}
	if diff := cmp.Diff(want, d.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestNotesFit: the API server refuses an event whose note has more bytes.
func TestNotesFit(t *testing.T) {
	for name, unit := range map[string]string{"ASCII": "a", "two bytes": "é", "three bytes": "語", "four bytes": "🚦"} {
		t.Run(name, func(t *testing.T) {
			for _, times := range []int{noteLimit/len(unit) - 1, noteLimit / len(unit), noteLimit/len(unit) + 1, 5 * noteLimit} {
				d := &draft{}
				text := strings.Repeat(unit, times)
				d.event(false, "x", "%s", text)
				got := d.events[0].Message
				if len(got) > noteLimit || !utf8.ValidString(got) {
					t.Errorf("%d times: %d bytes, valid %t", times, len(got), utf8.ValidString(got))
				}
				if whole := len(text) <= noteLimit; whole != (got == text) || len(got) < min(len(text), noteLimit-2*utf8.UTFMax) {
					t.Errorf("%d times: %d bytes became %d", times, len(text), len(got))
				}
			}
		})
	}
}
