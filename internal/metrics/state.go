package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// Evidence is where the present verdicts are.
type Evidence interface {
	// Latest returns the state of the present verdict and the newest tick whose metrics
	// were read (zero: none yet), or false if nothing is gathered about the rollout.
	Latest(types.NamespacedName) (state v1alpha1.VerdictState, read time.Time, ok bool)
}

// State reads what the status of every rollout says, whenever it is asked. It is a
// prometheus.Collector.
type State struct {
	// Reader lists the rollouts; it should be a cache.
	Reader client.Reader
	// Evidence is where the present verdicts are.
	Evidence Evidence
	// Leading says whether this is the replica that works: the others tell nothing, so
	// that nothing is told twice.
	Leading func() bool
	// Clock is the only source of the time.
	Clock clock.PassiveClock
}

// stateDefinitions are those that State tells.
var stateDefinitions = []Definition{info, desired, written, observed, phase, attempt, stage, inStage, stalled, waiting, verdict, age}

// Describe describes the metrics.
func (s *State) Describe(to chan<- *prometheus.Desc) {
	for _, d := range stateDefinitions {
		to <- d.desc()
	}
}

// Collect tells the metrics. A cache that cannot be read makes the scrape fail: a
// rollout that is not told of would look like one that is gone.
func (s *State) Collect(to chan<- prometheus.Metric) {
	if !s.Leading() {
		return
	}
	var all v1alpha1.WeightedRolloutList
	if err := s.Reader.List(context.Background(), &all); err != nil {
		to <- prometheus.NewInvalidMetric(info.desc(), err)
		return
	}
	now := s.Clock.Now()
	for i := range all.Items {
		t := teller{to: to, rollout: []string{all.Items[i].Namespace, all.Items[i].Name}}
		t.status(&all.Items[i].Status, now)
		if state, read, ok := s.Evidence.Latest(client.ObjectKeyFromObject(&all.Items[i])); ok {
			t.tell(verdict, 1, string(state))
			if !read.IsZero() {
				t.tell(age, now.Sub(read).Seconds())
			}
		}
	}
}

// teller tells the metrics of one rollout.
type teller struct {
	to      chan<- prometheus.Metric
	rollout []string
}

func (t teller) tell(d Definition, value float64, labels ...string) {
	m, err := prometheus.NewConstMetric(d.desc(), prometheus.GaugeValue, value, append(t.rollout[:2:2], labels...)...)
	if err != nil {
		m = prometheus.NewInvalidMetric(d.desc(), err)
	}
	t.to <- m
}

func (t teller) status(s *v1alpha1.WeightedRolloutStatus, now time.Time) {
	if s.Phase != "" {
		t.tell(phase, 1, string(s.Phase))
		t.tell(info, 1, s.Revision, s.StableRevision)
	}
	if s.Attempt > 0 {
		t.tell(attempt, float64(s.Attempt))
	}
	t.share(desired, s.Share.Desired)
	t.share(observed, s.Share.Observed)
	t.share(written, highestWritten(s.Routes))
	if s.Outcome == v1alpha1.OutcomeInProgress && s.Stage != nil {
		t.tell(stage, float64(s.Stage.Index)+1)
		if s.Stage.StartedAt != nil {
			t.tell(inStage, now.Sub(s.Stage.StartedAt.Time).Seconds())
		}
	}
	t.condition(stalled, s.Conditions, v1alpha1.ConditionStalled)
	t.condition(waiting, s.Conditions, v1alpha1.ConditionReconciling)
}

// share tells a share, unless it is not known.
func (t teller) share(d Definition, p *v1alpha1.Percent) {
	if p == nil {
		return
	}
	if points, err := p.BasisPoints(); err == nil {
		t.tell(d, float64(points)/10000)
	}
}

func (t teller) condition(d Definition, all []metav1.Condition, name string) {
	if c := meta.FindStatusCondition(all, name); c != nil && c.Status == metav1.ConditionTrue {
		t.tell(d, 1, c.Reason)
	}
}

// highestWritten is the highest share that was confirmed in a route; nil if there is
// none.
func highestWritten(routes []v1alpha1.RouteStatus) *v1alpha1.Percent {
	var highest *v1alpha1.Percent
	most := -1
	for i := range routes {
		if routes[i].Written == nil {
			continue
		}
		if points, err := routes[i].Written.BasisPoints(); err == nil && points > most {
			highest, most = routes[i].Written, points
		}
	}
	return highest
}
