package dashboard

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// asked is an order that a person has confirmed on the page.
type asked struct {
	Rollout string `json:"rollout"` // namespace/name
	Verb    string `json:"verb"`
	// Stand is what the page showed.
	Stand Stand `json:"stand"`
}

// order gives an order: at the attempt and stage that the page showed, or not at all.
func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	var a asked
	if s.options.Orders == nil {
		refuse(w, http.StatusForbidden, "this page only shows: start the dashboard with --allow-actions to give orders")
		return
	}
	if !jsonOnly(w, r) || !readBody(w, r, &a) {
		return
	}
	wr, _ := s.hub.find(a.Rollout)
	if wr == nil {
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no WeightedRollout %q any more", a.Rollout))
		return
	}
	if status, why := s.reject(wr, a); why != "" {
		refuse(w, status, why)
		return
	}
	if err := s.options.Orders.Give(r.Context(), a.Verb, wr); err != nil {
		refuse(w, http.StatusConflict, err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]string{"says": fmt.Sprintf("%s is written for attempt %d. What comes of it shows here once the controller has taken it.", a.Verb, wr.Status.Attempt)})
}

// reject says why an order is not given; empty: it is.
func (s *Server) reject(wr *v1alpha1.WeightedRollout, a asked) (status int, why string) {
	now := standOf(wr)
	if now != a.Stand {
		return http.StatusConflict, fmt.Sprintf("the rollout has moved on meanwhile, to attempt %d of revision %q, stage %s, so nothing was written: look at it again", now.Attempt, now.Revision, position(wr))
	}
	all := s.options.Orders.For(wr)
	i := slices.IndexFunc(all, func(o Order) bool { return o.Verb == a.Verb })
	switch {
	case i < 0:
		return http.StatusBadRequest, fmt.Sprintf("there is no order %q", a.Verb)
	case all[i].Refusal != "":
		return http.StatusConflict, fmt.Sprintf("%s makes no sense now: %s", a.Verb, all[i].Refusal)
	}
	return 0, ""
}

func position(wr *v1alpha1.WeightedRollout) string {
	if wr.Status.Stage == nil || wr.Status.Stage.Position == "" {
		return "none"
	}
	return wr.Status.Stage.Position
}
