package dashboard

import (
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// RowOf sums a rollout up.
var RowOf = rowOf

// MostPoints bounds what Seen returns.
const MostPoints = mostPoints

// Seen is what is remembered of a rollout that was seen in these states, one second after
// the other.
func Seen(from time.Time, states []*v1alpha1.WeightedRollout) (since time.Time, points []Point) {
	var t timeline
	for i, wr := range states {
		t.see(wr, from.Add(time.Duration(i)*time.Second))
	}
	return t.since, t.points
}

// AskEvery sets how often evidence is read.
func (s *Server) AskEvery(d time.Duration) { s.lookouts.every = d }

// Lookouts is the number of rollouts that evidence is read of.
func (s *Server) Lookouts() int {
	s.lookouts.mu.Lock()
	defer s.lookouts.mu.Unlock()
	return len(s.lookouts.all)
}
