package cli

import (
	"fmt"
	"time"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/weightedrollout/weightedrollout/internal/diagnose"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// shownEvents is how many events status shows.
const shownEvents = 5

// Report is what status says, as data.
type Report struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Revision  string `json:"revision,omitempty"`
	Attempt   int64  `json:"attempt,omitempty"`
	// Stage is the place in the plan, such as "3/6".
	Stage string `json:"stage,omitempty"`
	// Weight is the canary's share in percent, and MeasuredPercent its part of the
	// Requests that the gateway has counted since.
	Weight          string   `json:"weight,omitempty"`
	MeasuredPercent *float64 `json:"measuredPercent,omitempty"`
	Requests        int64    `json:"requests,omitempty"`
	// Verdict is the newest one, and VerdictSays why.
	Verdict     string `json:"verdict"`
	VerdictSays string `json:"verdictSays,omitempty"`
	// Situation is what the rollout waits for and what to do; Waiting says for how long.
	Situation diagnose.Situation `json:"situation"`
	Waiting   string             `json:"waiting,omitempty"`
	// Next is what the next change awaits.
	Next string `json:"next,omitempty"`
	// Source says where the numbers come from, and NotLive why they are not live.
	Source  Source `json:"source"`
	NotLive string `json:"notLive,omitempty"`
	// Evidence is the controller's live evidence.
	Evidence *live.Document `json:"evidence,omitempty"`
	// Events are the newest ones, the newest last.
	Events []Event `json:"events"`
}

// Event is an event of the controller.
type Event struct {
	At      time.Time `json:"at"`
	Times   int32     `json:"times,omitempty"`
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

func eventOf(e eventsv1.Event) Event {
	at, times := lastHappened(e)
	is := Event{At: at.UTC(), Type: e.Type, Reason: e.Reason, Message: e.Note}
	if times > 1 {
		is.Times = times
	}
	return is
}

func (e Event) words() string {
	text := reasoned(e.Reason, e.Message)
	if e.Times > 1 {
		text += fmt.Sprintf(" (%d times)", e.Times)
	}
	return text
}

func (e Event) warning() bool { return e.Type == "Warning" }

// newest are the newest events, the newest last.
func newest(events []eventsv1.Event, most int) []Event {
	found := []Event{}
	for _, e := range events[max(0, len(events)-most):] {
		found = append(found, eventOf(e))
	}
	return found
}

// reportOn puts together what is known.
func reportOn(v *view, now time.Time) *Report {
	wr, st := v.rollout, &v.rollout.Status
	r := &Report{
		Namespace: wr.Namespace, Name: wr.Name, Phase: string(phaseOf(wr)), Revision: st.Revision, Attempt: st.Attempt,
		Situation: situate(wr, now), Next: v.next(now), Source: v.source(), Evidence: v.document, Events: newest(v.events, shownEvents),
	}
	if st.Stage != nil {
		r.Stage = st.Stage.Position
	}
	if st.Share.Desired != nil {
		r.Weight = string(*st.Share.Desired)
	}
	if percent, requests, ok := v.measured(); ok {
		r.MeasuredPercent, r.Requests = &percent, requests
	}
	r.Verdict, r.VerdictSays = v.verdictWords()
	r.Waiting = lasting(wr, r.Situation.Reason, now)
	if v.documentErr != nil {
		r.NotLive = v.documentErr.Error()
	}
	return r
}

// drawStatus shows it on one screen.
func drawStatus(s *screen, v *view, r *Report, now time.Time) {
	s.line(bold, title(v.rollout))
	phase := shownPhase(v.rollout)
	s.raw(s.paint(colorOf(phaseOf(v.rollout)), phase) + "  " + stageBar(stops(v.rollout), s.width-cells(phase)-2))
	s.gap()
	s.indented("weight   ", "%s", shareText(v.rollout, now))
	if r.MeasuredPercent != nil {
		s.indented("measured ", "%s percent of %s", points(*r.MeasuredPercent), plural(int(r.Requests), "request", "requests"))
	}
	s.indented("verdict  ", "%s, %s", r.Verdict, r.VerdictSays)
	s.indented("now      ", "%s", capital(v.waits(r.Situation, now)))
	if r.Next != "" {
		s.indented("next     ", "%s", r.Next)
	}
	if r.Situation.Do != "" {
		s.indented("do       ", "%s", asCommand(r.Situation.Do, v.rollout))
	}
	drawNewest(s, v, r, now)
	s.gap()
	s.prose(0, "%s", capital(v.sourceLine(now))+".")
}

// drawNewest lists the newest events.
func drawNewest(s *screen, v *view, r *Report, now time.Time) {
	s.head("Events")
	switch {
	case v.eventsErr != nil:
		s.indented("", "they cannot be read: %v", v.eventsErr)
	case len(r.Events) == 0:
		s.indented("", "none: the API server keeps them for an hour, as a rule")
	}
	for _, e := range r.Events {
		s.indented(pad(human(now.Sub(e.At)), 7, true)+" ago  ", "%s", e.words())
	}
}
