package route

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

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
// An annotation that cannot be read has no mark.
func MarkOf(r *Object, uid types.UID) *Mark {
	if r == nil || uid == "" {
		return nil
	}
	m, ok := marks(r.Annotations[v1alpha1.LoweredAnnotation])[uid]
	if !ok || m.Attempt < 1 || m.At.IsZero() || !reasonPattern.MatchString(m.Reason) {
		return nil
	}
	m.Message = clipped(m.Message)
	return &m
}

func marks(value string) map[types.UID]Mark {
	if value == "" || len(value) > maxMarkText {
		return nil
	}
	var all map[types.UID]Mark
	if err := json.Unmarshal([]byte(value), &all); err != nil {
		return nil
	}
	return all
}

// markSteps sets the rollout's mark, or takes it away if m is nil. Marks of others stay.
// The annotations have been added before if there were none.
func markSteps(annotations map[string]string, uid types.UID, m *Mark) []any {
	value, there := annotations[v1alpha1.LoweredAnnotation]
	path := annotationPath(v1alpha1.LoweredAnnotation)
	all := marks(value)
	if m == nil {
		if _, ours := all[uid]; !ours {
			return nil
		}
	}
	kept := maps.Clone(all)
	delete(kept, uid)
	if m != nil && uid != "" {
		if kept == nil {
			kept = map[types.UID]Mark{}
		}
		added := *m
		added.Message = clipped(m.Message)
		kept[uid] = added
	}
	for len(kept) > maxMarks {
		delete(kept, oldest(kept))
	}
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

func oldest(all map[types.UID]Mark) types.UID {
	return slices.MinFunc(slices.Sorted(maps.Keys(all)), func(a, b types.UID) int { return all[a].At.Compare(all[b].At.Time) })
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

// Overrules reports whether a status is still the one in whose place the decision of the
// mark was to be stored.
func (m *Mark) Overrules(s *v1alpha1.WeightedRolloutStatus) bool {
	return m.ChangedAt.Equal(s.Share.ChangedAt) && m.ConfirmedAt.Equal(s.Share.ConfirmedAt)
}
