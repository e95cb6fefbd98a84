package rollout

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// noteLimit is the most that an event's note may have, in bytes (events.k8s.io/v1).
const noteLimit = 1024

// clipNote shortens a text to what an event may have.
func clipNote(s string) string {
	const more = "…"
	if len(s) <= noteLimit {
		return s
	}
	end := noteLimit - len(more)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + more
}

// event tells people of something. Kubernetes counts events of one kind and reason about
// one version of an object, and keeps the text of the first alone: two of a decision are
// therefore one.
func (d *draft) event(warning bool, reason, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	same := func(e Event) bool { return e.Warning == warning && e.Reason == reason }
	if i := slices.IndexFunc(d.events, same); i >= 0 {
		d.events[i].Message = clipNote(d.events[i].Message + "; " + message)
		return
	}
	d.events = append(d.events, Event{Warning: warning, Reason: reason, Message: clipNote(message)})
}
