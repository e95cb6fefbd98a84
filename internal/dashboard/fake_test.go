package dashboard_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/dashboard"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// cluster is a small API server: what it is told changes at once.
type cluster struct {
	mu       sync.Mutex
	rollouts map[string]*v1alpha1.WeightedRollout
	down     error
	evidence *live.Document
	events   []eventsv1.Event
	asked    int // for evidence
	lists    int
	watchers []chan dashboard.Change
	end      chan struct{} // ends the watches
}

func newCluster(rollouts ...*v1alpha1.WeightedRollout) *cluster {
	c := &cluster{rollouts: map[string]*v1alpha1.WeightedRollout{}, end: make(chan struct{})}
	for _, wr := range rollouts {
		c.rollouts[wr.Namespace+"/"+wr.Name] = wr
	}
	return c
}

func (c *cluster) List(context.Context) (*v1alpha1.WeightedRolloutList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists++
	if c.down != nil {
		return nil, c.down
	}
	list := &v1alpha1.WeightedRolloutList{}
	for _, wr := range c.rollouts {
		list.Items = append(list.Items, *wr.DeepCopy())
	}
	return list, nil
}

func (c *cluster) Watch(ctx context.Context, _ string, each func(dashboard.Change)) error {
	mine := make(chan dashboard.Change, 100)
	c.mu.Lock()
	c.watchers = append(c.watchers, mine)
	end := c.end
	// What has come between List and here is told, as by a resourceVersion.
	for _, wr := range c.rollouts {
		mine <- dashboard.Change{Rollout: wr.DeepCopy()}
	}
	c.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return nil
		case change := <-mine:
			each(change)
		}
	}
}

// write changes a rollout, as the controller would.
func (c *cluster) write(wr *v1alpha1.WeightedRollout, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wr = wr.DeepCopy()
	wr.ResourceVersion = version
	c.rollouts[wr.Namespace+"/"+wr.Name] = wr
	for _, w := range c.watchers {
		w <- dashboard.Change{Rollout: wr.DeepCopy()}
	}
}

func (c *cluster) remove(wr *v1alpha1.WeightedRollout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rollouts, wr.Namespace+"/"+wr.Name)
	for _, w := range c.watchers {
		w <- dashboard.Change{Rollout: wr.DeepCopy(), Gone: true}
	}
}

// fail lets everything fail from now on, and ends what is under way; nil: it works again.
func (c *cluster) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = err
	close(c.end)
	c.end = make(chan struct{})
}

func (c *cluster) Events(context.Context, *v1alpha1.WeightedRollout) ([]eventsv1.Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.events, c.down
}

func (c *cluster) Evidence(context.Context, *v1alpha1.WeightedRollout) (*live.Document, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.evidence == nil {
		return nil, dashboard.ErrNoRight
	}
	return c.evidence, nil
}

func (c *cluster) questions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// given is an order that was carried out.
type given struct {
	Verb    string
	Rollout string
	Attempt int64
}

// orders notes what it is told to do.
type orders struct {
	mu    sync.Mutex
	given []given
	err   error
}

func (o *orders) For(wr *v1alpha1.WeightedRollout) []dashboard.Order {
	retry := dashboard.Order{Verb: "retry", Short: "again", Refusal: "it is under way"}
	return []dashboard.Order{{Verb: "abort", Short: "end it", Effect: "attempt " + wr.Status.Revision + " ends"}, retry}
}

func (o *orders) Give(_ context.Context, verb string, seen *v1alpha1.WeightedRollout) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return o.err
	}
	o.given = append(o.given, given{verb, seen.Namespace + "/" + seen.Name, seen.Status.Attempt})
	return nil
}

func (o *orders) all() []given {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]given{}, o.given...)
}

var errDown = errors.New("connection refused")

// checkout is at 20 percent in the second of four stages.
func checkout(t *testing.T) *v1alpha1.WeightedRollout {
	t.Helper()
	wr := &v1alpha1.WeightedRollout{}
	wr.Namespace, wr.Name, wr.UID, wr.ResourceVersion, wr.Generation = "shop", "checkout", "uid-1", "1", 1
	wr.Spec.Plan.Stages = []v1alpha1.Stage{{Weight: "5", Soak: "10m"}, {Weight: "20", Soak: "10m"}, {Weight: "50", Soak: "10m", Approval: v1alpha1.ApprovalRequired}}
	st := &wr.Status
	st.ObservedGeneration, st.Phase, st.Outcome, st.Revision, st.Attempt = 1, v1alpha1.PhaseProgressing, v1alpha1.OutcomeInProgress, "2.4.1", 3
	st.Stage = &v1alpha1.StageStatus{Index: 1, Position: "2/4", Weight: "20"}
	desired, written := v1alpha1.Percent("20"), v1alpha1.Percent("12.5")
	st.Share = v1alpha1.ShareStatus{Desired: &desired, Observed: &written, ObservedFrom: v1alpha1.ShareFromWeights}
	st.Routes = []v1alpha1.RouteStatus{{Kind: v1alpha1.HTTPRouteKind, Name: "checkout", Written: &written}}
	st.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSoaking, Message: "20 percent is held"}}
	return wr
}
