package dashboard

import (
	"slices"
	"strconv"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// shownEvents is how many events the page shows, the newest first.
const shownEvents = 20

// Detail is all that the page shows of one rollout.
type Detail struct {
	Row
	// Missing says that there is no such rollout, or none any more.
	Missing bool `json:"missing,omitempty"`
	// Stand is what an order is bound to.
	Stand Stand `json:"stand"`
	// Numbers are what else is known of its situation, in words.
	Numbers []diagnose.Number `json:"numbers"`
	Share   Share             `json:"share"`
	Stage   *StageNow         `json:"stage,omitempty"`
	Weight  Weight            `json:"weight"`
	Limits  Limits            `json:"limits"`
	Routes  []RouteNow        `json:"routes"`
	// Snapshot is the verdict in the status, from the last transition.
	Snapshot   *Snapshot   `json:"snapshot,omitempty"`
	Conditions []Condition `json:"conditions"`
	History    []Attempt   `json:"history"`
	Command    *Command    `json:"command,omitempty"`
	Events     []Event     `json:"events"`
	// EventsTrouble and EvidenceTrouble say why there are none.
	EventsTrouble   string         `json:"eventsTrouble,omitempty"`
	Evidence        *live.Document `json:"evidence,omitempty"`
	EvidenceTrouble string         `json:"evidenceTrouble,omitempty"`
	// Orders are those that make sense now; none where the page is read-only.
	Orders []Order `json:"orders"`
}

// Stand is where a rollout stands. An order that was given at one is never carried out at
// another.
type Stand struct {
	UID      string `json:"uid"`
	Revision string `json:"revision"`
	Attempt  int64  `json:"attempt"`
	// Stage is the index of the stage, or -1.
	Stage int32 `json:"stage"`
}

func standOf(wr *v1alpha1.WeightedRollout) Stand {
	s := Stand{UID: string(wr.UID), Revision: wr.Status.Revision, Attempt: wr.Status.Attempt, Stage: -1}
	if wr.Status.Stage != nil {
		s.Stage = wr.Status.Stage.Index
	}
	return s
}

// Share is the canary's share and since when.
type Share struct {
	ObservedFrom string     `json:"observedFrom,omitempty"`
	ChangedAt    *time.Time `json:"changedAt,omitempty"`
	ConfirmedAt  *time.Time `json:"confirmedAt,omitempty"`
}

// StageNow is the stage that is under way.
type StageNow struct {
	Weight            string     `json:"weight"`
	Soak              string     `json:"soak,omitempty"`
	StartedAt         *time.Time `json:"startedAt,omitempty"`
	Approved          bool       `json:"approved"`
	Skipped           bool       `json:"skipped"`
	ScaledBack        bool       `json:"scaledBack"`
	ClockStoppedSince *time.Time `json:"clockStoppedSince,omitempty"`
}

// Weight is the share over time.
type Weight struct {
	// Since is when the dashboard began to look: Seen is from then on, and Reported, the
	// desired share only, is what events and status say of the time before.
	Since    time.Time `json:"since"`
	Seen     []Point   `json:"seen"`
	Reported []Point   `json:"reported"`
}

// Limits are those of the plan's health, where there are any.
type Limits struct {
	ErrorPercent   *float64 `json:"errorPercent,omitempty"`
	LatencySeconds *float64 `json:"latencySeconds,omitempty"`
	Percentile     string   `json:"percentile,omitempty"`
}

// RouteNow is what is known of a route.
type RouteNow struct {
	Kind        string     `json:"kind"`
	Name        string     `json:"name"`
	Written     string     `json:"written"`
	ConfirmedAt *time.Time `json:"confirmedAt,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Message     string     `json:"message,omitempty"`
}

// Snapshot is a verdict as of a transition.
type Snapshot struct {
	State   string     `json:"state"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Score   string     `json:"score,omitempty"`
	At      *time.Time `json:"at,omitempty"`
}

// Condition is one of the status's.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
}

// Attempt is a walk through the plan that has ended.
type Attempt struct {
	Attempt   int64      `json:"attempt"`
	Revision  string     `json:"revision"`
	Outcome   string     `json:"outcome"`
	Reason    string     `json:"reason,omitempty"`
	Message   string     `json:"message,omitempty"`
	Weight    string     `json:"weight"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// Command is what became of the last command.
type Command struct {
	Verb     string `json:"verb"`
	Accepted bool   `json:"accepted"`
	Message  string `json:"message,omitempty"`
}

// Event is an event of the controller.
type Event struct {
	At      time.Time `json:"at"`
	Times   int32     `json:"times"`
	Warning bool      `json:"warning"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

// detailOf puts together what is known of a rollout.
func detailOf(wr *v1alpha1.WeightedRollout, seen timeline, f findings, now time.Time) Detail {
	st := &wr.Status
	d := Detail{
		Row: rowOf(wr, now), Stand: standOf(wr), Numbers: diagnose.Situate(wr, now).Numbers,
		Share:  Share{ObservedFrom: string(st.Share.ObservedFrom), ChangedAt: moment(st.Share.ChangedAt), ConfirmedAt: moment(st.Share.ConfirmedAt)},
		Weight: Weight{Since: seen.since, Seen: slices.Clone(seen.points), Reported: reported(wr, f.events, seen.since)},
		Limits: limitsOf(wr.Spec.Health), Routes: []RouteNow{}, Conditions: []Condition{}, History: []Attempt{}, Orders: []Order{},
		Events: newest(f.events), EventsTrouble: text(f.eventsErr), Evidence: f.evidence, EvidenceTrouble: text(f.evidenceErr),
	}
	if s := st.Stage; s != nil {
		d.Stage = &StageNow{
			Weight: string(s.Weight), Soak: s.Soak, StartedAt: moment(s.StartedAt), Approved: s.Approved, Skipped: s.Skipped,
			ScaledBack: s.ScaledBack, ClockStoppedSince: moment(s.ClockStoppedSince),
		}
	}
	if v := st.Verdict; v != nil {
		d.Snapshot = &Snapshot{State: string(v.State), Reason: v.Reason, Message: v.Message, Score: v.Score, At: moment(v.At)}
	}
	if c := st.Command; c != nil {
		d.Command = &Command{Verb: c.Verb, Accepted: c.Accepted, Message: c.Message}
	}
	for _, r := range st.Routes {
		d.Routes = append(d.Routes, RouteNow{Kind: string(r.Kind), Name: r.Name, Written: percent(r.Written), ConfirmedAt: moment(r.ConfirmedAt), Reason: r.Reason, Message: r.Message})
	}
	for _, c := range st.Conditions {
		d.Conditions = append(d.Conditions, conditionOf(c))
	}
	for _, h := range st.History {
		d.History = append(d.History, Attempt{
			Attempt: h.Attempt, Revision: h.Revision, Outcome: string(h.Outcome), Reason: h.Reason, Message: h.Message,
			Weight: percent(h.Weight), StartedAt: moment(h.StartedAt), EndedAt: moment(&h.EndedAt),
		})
	}
	return d
}

func conditionOf(c metav1.Condition) Condition {
	return Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.UTC()}
}

func limitsOf(h *v1alpha1.Health) Limits {
	var l Limits
	if h == nil || h.Disabled {
		return l
	}
	if h.ErrorRate != nil {
		if f, err := strconv.ParseFloat(string(h.ErrorRate.MaxPercent), 64); err == nil {
			l.ErrorPercent = &f
		}
	}
	if h.Latency != nil {
		l.Percentile = string(h.Latency.Percentile)
		if d, err := h.Latency.Max.Parse(); err == nil && d > 0 {
			l.LatencySeconds = new(d.Seconds())
		}
	}
	return l
}

// newest are the newest events, the newest first.
func newest(events []eventsv1.Event) []Event {
	found := []Event{}
	for _, e := range slices.Backward(events[max(0, len(events)-shownEvents):]) {
		is := Event{At: e.EventTime.UTC(), Times: 1, Warning: e.Type == "Warning", Reason: e.Reason, Message: e.Note}
		if e.EventTime.IsZero() {
			is.At = e.CreationTimestamp.UTC()
		}
		if s := e.Series; s != nil && s.Count > 1 {
			is.At, is.Times = s.LastObservedTime.UTC(), s.Count
		}
		found = append(found, is)
	}
	return found
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
