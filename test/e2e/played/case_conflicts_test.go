package played

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// planOfWeb is what a whole plan shows on a route that begins at 100/0.
var planOfWeb = []string{"100/0", "99/1", "95/5", "90/10", "80/20", "50/50", "20/80", "0/100"}

// TestC44ForeignEditsAllTheTime: somebody edits an annotation of the route every
// 50 ms. The edits stay, and so does the plan.
func TestC44ForeignEditsAllTheTime(t *testing.T) {
	w := newWorld(t)
	w.rollout("web")
	const key = "example.com/counter"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var last string
	var storm sync.WaitGroup
	storm.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for n := 1; ctx.Err() == nil; n++ {
			value := fmt.Sprint(n)
			route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
			patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
			// Not ctx: an edit must not be given up when it may have arrived already.
			if err := w.client.Patch(context.WithoutCancel(ctx), route, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("storm")); err == nil {
				last = value
			} else {
				t.Errorf("editing the annotation: %v", err)
			}
			<-tick.C
		}
	})
	w.startManager()
	w.await("web", "half of the plan, or the end of the storm", func(wr *v1alpha1.WeightedRollout) bool {
		return ctx.Err() != nil || desired(wr) == "50"
	})
	cancel()
	storm.Wait()
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", planOfWeb...)
	if got := w.route("web").Annotations[key]; got != last {
		t.Errorf("the foreign annotation is %q, and its last value was %q", got, last)
	}
	conflicts := w.api.since(0, func(r *request) bool { return r.Code == http.StatusConflict })
	t.Logf("%s edits, %d conflicts", last, len(conflicts))
}

// TestC44ConflictsAtFirst: the API server answers 409 to the first ten writes.
func TestC44ConflictsAtFirst(t *testing.T) { testConflicts(t, (*request).isOurWrite) }

// TestC44ConflictsOfStatus: the API server answers 409 to the first ten writes of status.
func TestC44ConflictsOfStatus(t *testing.T) { testConflicts(t, (*request).isStatusWrite) }

// TestC44ConflictsOfRoutes: the API server answers 409 to the first ten writes of the route.
func TestC44ConflictsOfRoutes(t *testing.T) { testConflicts(t, (*request).isRouteWrite) }

func testConflicts(t *testing.T, concerned func(*request) bool) {
	w := newWorld(t)
	const conflicts = 10
	refused := 0
	var mu sync.Mutex
	w.api.onRequest(func(r *request) verdict {
		mu.Lock()
		defer mu.Unlock()
		if refused == conflicts || !concerned(r) {
			return verdict{}
		}
		refused++
		return verdict{refuse: http.StatusConflict}
	})
	w.rollout("web")
	w.startManager()
	w.awaitPhase("web", v1alpha1.PhasePromoted)
	w.wantWeights("web", planOfWeb...)
	mu.Lock()
	defer mu.Unlock()
	if refused != conflicts {
		t.Errorf("only %d writes were refused", refused)
	}
}

// TestC44RouteWritesRefused: 403, 422 and 504 on the route's writes. The condition
// carries the reason, the weight stays, and nothing is claimed that the API server
// has not accepted.
func TestC44RouteWritesRefused(t *testing.T) {
	w := newWorld(t)
	codes := map[string]int{
		"forbidden": http.StatusForbidden, "invalid": http.StatusUnprocessableEntity, "timeout": http.StatusGatewayTimeout,
	}
	var mu sync.Mutex
	refused := map[string]int{}
	refusing := true
	w.api.onRequest(func(r *request) verdict {
		mu.Lock()
		defer mu.Unlock()
		if p, ok := r.firstPair(); refusing && r.isRouteWrite() && ok && p.canary == 5 {
			refused[r.Name]++
			return verdict{refuse: codes[r.Name]}
		}
		return verdict{}
	})
	for name := range codes {
		w.rollout(name, soak(1, "10m"))
	}
	w.startManager()
	for name := range codes {
		eventually(t, "three refused writes of "+name, func() (bool, string) {
			mu.Lock()
			defer mu.Unlock()
			return refused[name] >= 3, fmt.Sprint(refused)
		})
		wr := w.await(name, "the reason", func(wr *v1alpha1.WeightedRollout) bool {
			return condition(wr, v1alpha1.ConditionStalled).Reason == v1alpha1.ReasonRouteWriteFailed
		})
		stalled := condition(wr, v1alpha1.ConditionStalled)
		if stalled.Status != metav1.ConditionTrue || !strings.Contains(stalled.Message, refusal) {
			t.Errorf("%s: the condition does not carry the reason: %+v", name, stalled)
		}
		if wr.Status.Share.ConfirmedAt != nil || wr.Status.Routes[0].Written == nil || *wr.Status.Routes[0].Written != "1" {
			t.Errorf("%s: status claims a share that was not accepted: %+v, %+v", name, wr.Status.Share, wr.Status.Routes)
		}
		w.wantWeights(name, "100/0", "99/1")
	}
	mu.Lock()
	refusing = false
	mu.Unlock()
	for name := range codes {
		w.awaitShare(name, "5")
		w.wantWeights(name, "100/0", "99/1", "95/5")
	}
}
