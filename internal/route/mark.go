package route

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	// maxMarks is how many rollouts a route keeps marks of; the newest stay.
	maxMarks = 16
	// maxMarkMessage is the most that a mark says, in characters.
	maxMarkMessage = 300
	// maxMarkText is the largest annotation that is read, in bytes.
	maxMarkText = maxMarks * 4 * (maxMarkMessage + 600)
)

// Mark is what a rollout leaves on a route when it lowers the share before, or without,
// a record in its status. It only ever ends or lowers: that there is none proves nothing,
// since other tools replace routes.
type Mark struct {
	// Attempt and Revision are those that were lowered.
	Attempt  int64  `json:"attempt"`
	Revision string `json:"revision"`
	// At is when that was decided, in microseconds.
	At metav1.MicroTime `json:"at"`
	// ChangedAt and ConfirmedAt are those of the share in the status that was not, or not
	// yet, overwritten. A status with other ones is newer than the mark.
	ChangedAt   *metav1.MicroTime `json:"changedAt,omitempty"`
	ConfirmedAt *metav1.MicroTime `json:"confirmedAt,omitempty"`
	// Ended says that the attempt is over. Break says that it was broken off for a while,
	// which ends it as well, unless the status has it.
	Ended bool `json:"ended,omitempty"`
	Break bool `json:"break,omitempty"`
	// Reason is a reason of the API, and Message a sentence: why.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// reasonPattern is what the API server takes as the reason of a condition.
var reasonPattern = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]{0,253}[A-Za-z0-9_])?$`)

// MarkOf returns the mark that the rollout with the uid has left on the route, or nil.
// What cannot be read is no mark.
func MarkOf(r *Object, uid types.UID) *Mark {
	if r == nil || uid == "" {
		return nil
	}
	m, ok := readMark(marks(r.Annotations[v1alpha1.LoweredAnnotation])[uid])
	if !ok || m.Attempt < 1 || m.At.IsZero() || !reasonPattern.MatchString(m.Reason) {
		return nil
	}
	m.Message = clipped(m.Message)
	return &m
}

func marks(value string) map[types.UID]json.RawMessage {
	if value == "" || len(value) > maxMarkText {
		return nil
	}
	var all map[types.UID]json.RawMessage
	if err := json.Unmarshal([]byte(value), &all); err != nil {
		return nil
	}
	return all
}

func readMark(text json.RawMessage) (m Mark, ok bool) {
	return m, len(text) > 0 && json.Unmarshal(text, &m) == nil
}

// markSteps sets the rollout's mark, or takes it away if m is nil. Marks of others stay.
// The annotations have been added before if there were none.
func markSteps(annotations map[string]string, uid types.UID, m *Mark) []any {
	value, there := annotations[v1alpha1.LoweredAnnotation]
	kept := marks(value)
	if _, ours := kept[uid]; uid == "" || m == nil && !ours {
		return nil
	}
	delete(kept, uid)
	for len(kept) >= maxMarks {
		delete(kept, oldest(kept))
	}
	if m != nil {
		added := *m
		added.Message = clipped(m.Message)
		text, err := json.Marshal(added)
		if err != nil {
			return nil
		}
		if kept == nil {
			kept = map[types.UID]json.RawMessage{}
		}
		kept[uid] = text
	}
	path := annotationPath(v1alpha1.LoweredAnnotation)
	if len(kept) == 0 {
		if !there {
			return nil
		}
		return []any{removal{Op: "remove", Path: path}}
	}
	text, err := json.Marshal(kept)
	if err != nil || string(text) == value {
		return nil
	}
	return []any{operation{Op: "add", Path: path, Value: string(text)}}
}

// oldest is the rollout whose mark is the oldest, or cannot be read.
func oldest(all map[types.UID]json.RawMessage) types.UID {
	at := func(uid types.UID) time.Time {
		m, _ := readMark(all[uid])
		return m.At.Time
	}
	return slices.MinFunc(slices.Sorted(maps.Keys(all)), func(a, b types.UID) int { return at(a).Compare(at(b)) })
}

func clipped(s string) string {
	runes := []rune(s)
	if len(runes) <= maxMarkMessage {
		return s
	}
	return string(runes[:maxMarkMessage-1]) + "…"
}

// Instead returns the mark of a decision that was to be stored in place of this status.
func (m *Mark) Instead(of *v1alpha1.WeightedRolloutStatus) *Mark {
	is := *m
	is.ChangedAt, is.ConfirmedAt = of.Share.ChangedAt, of.Share.ConfirmedAt
	return &is
}

// Plain returns the mark without what it says of the attempt's end: it says only that the
// route was written.
func (m *Mark) Plain() *Mark {
	is := *m
	is.Ended, is.Break = false, false
	return &is
}

// Outlasts reports whether the mark says more of the attempt's end than another one.
func (m *Mark) Outlasts(other *Mark) bool {
	return other == nil || m.Ended && !other.Ended || m.Break && !other.Ended && !other.Break
}

// Overrules reports whether a status is still the one in whose place the decision of the
// mark was to be stored.
func (m *Mark) Overrules(s *v1alpha1.WeightedRolloutStatus) bool {
	return m.ChangedAt.Equal(s.Share.ChangedAt) && m.ConfirmedAt.Equal(s.Share.ConfirmedAt)
}
