package telemetry

import (
	"cmp"
	"strconv"
	"time"

	"github.com/weightedrollout/weightedrollout/internal/health"
)

const (
	// maxFailures bounds how seldom something is asked for: a wait is doubled with each
	// failure up to this one.
	maxFailures = 4
	// maxParts is into how many parts the rollouts of a namespace are divided at once.
	maxParts = 64
)

// standing is how the latest requests about a rollout, or one of its checks, went. What is
// in good standing, as at first, is asked for together with everybody else.
//
// Whose fault a failure was shows later: if the server has answered others since, those
// that were asked about are set apart, each from the others. If it has answered nobody, it
// is down, and then it would be of no use to ask it more often.
type standing struct {
	// apart names those with which a rollout is asked for; empty: with all of its group.
	apart string
	// failures counts those in a row while it was all that was asked for, and notBefore is
	// when it may be asked for again.
	failures  int
	notBefore time.Time
	// answered is how many answers the server had given when its standing was last lowered,
	// and one more; 0: that has not happened.
	answered int64

	failed  failure // the latest request, unless it was answered
	settled bool    // the conclusion from that is drawn
}

// failure is a request without an answer.
type failure struct {
	problem *health.Problem // nil: there was none
	next    string          // with which others it is asked for, if it is set apart
	single  bool            // there were no others
	tick    time.Time       // that it was about
	took    time.Duration   // until it failed
	rest    time.Duration   // that the server asked for
	at      time.Time
}

// settle draws the conclusion from the latest failure. The number of answers is that of
// the server until now.
func (s *standing) settle(answers int64, interval time.Duration) {
	f := &s.failed
	if f.problem == nil || s.settled {
		return
	}
	s.settled = true
	theirs := s.othersAnswered(answers)
	switch {
	case !theirs:
		s.apart = ""
	case f.next == s.apart:
		s.failures = min(s.failures+1, maxFailures)
		s.notBefore = f.tick.Add(max(interval, f.took) << (s.failures - 1))
	default:
		s.apart = f.next
	}
	if theirs {
		s.answered = answers + 1
	}
	if until := f.at.Add(f.rest); (f.single || !theirs) && until.After(s.notBefore) {
		s.notBefore = until
	}
}

// othersAnswered reports whether the server has answered anything since the standing was
// lowered, if it ever was.
func (s *standing) othersAnswered(answers int64) bool { return answers+1 > s.answered }

// fail notes that the latest request was not answered.
func (s *standing) fail(f failure) { s.failed, s.settled = f, false }

// succeed puts it into good standing again.
func (s *standing) succeed() {
	*s = standing{answered: s.answered}
}

// waits reports whether it is too early to ask for it again.
func (s *standing) waits(now time.Time) bool { return now.Before(s.notBefore) }

// apartFrom returns how the members of a request are asked for when they are set apart
// from each other: namespace by namespace, or the rollouts of one, of which each comes
// alone, unless there are very many.
func apartFrom(members []member) []string {
	next := make([]string, len(members))
	several := sharedBy(members) == everybody
	for i, m := range members {
		k := m.entry.target.Key
		switch {
		case several:
			next[i] = k.Namespace
		case len(members) <= maxParts:
			next[i] = k.String()
		default:
			next[i] = k.Namespace + "/#" + strconv.Itoa(i*maxParts/len(members))
		}
	}
	return next
}

// sharedBy returns the namespace of the members, or everybody if they are of several.
func sharedBy(members []member) string {
	first := members[0].entry.target.Key.Namespace
	for _, m := range members[1:] {
		if m.entry.target.Key.Namespace != first {
			return everybody
		}
	}
	return first
}

// byNamespace sorts members so that those of a namespace are side by side.
func byNamespace(a, b member) int {
	return cmp.Or(cmp.Compare(a.entry.target.Key.Namespace, b.entry.target.Key.Namespace), cmp.Compare(a.entry.target.Key.Name, b.entry.target.Key.Name))
}
