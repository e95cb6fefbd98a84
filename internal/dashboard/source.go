// Package dashboard serves one page on loopback that shows rollouts live, and on request
// lets a person steer them. It decides nothing: what it shows it is handed, and what it
// writes is the commands that the plugin writes as well.
package dashboard

import (
	"context"
	"errors"

	eventsv1 "k8s.io/api/events/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/live"
)

// Source is where the page has its data from.
type Source interface {
	// List reads all rollouts that are to be shown.
	List(ctx context.Context) (*v1alpha1.WeightedRolloutList, error)
	// Watch tells of every change since a resourceVersion, until the stream or the context
	// ends.
	Watch(ctx context.Context, version string, each func(Change)) error
	// Events reads the controller's events about a rollout, the oldest first.
	Events(ctx context.Context, wr *v1alpha1.WeightedRollout) ([]eventsv1.Event, error)
	// Evidence reads the live evidence about a rollout. It fails with ErrNoRight where
	// asking again soon is of no use.
	Evidence(ctx context.Context, wr *v1alpha1.WeightedRollout) (*live.Document, error)
}

// ErrNoRight says that the user may not read the live evidence.
var ErrNoRight = errors.New("no right to read the live evidence")

// Change is one change of a rollout.
type Change struct {
	Rollout *v1alpha1.WeightedRollout
	// Gone says that it was deleted.
	Gone bool
}

// Orders are what a person can tell the controller to do.
type Orders interface {
	// For says of every order whether it makes sense for a rollout now.
	For(wr *v1alpha1.WeightedRollout) []Order
	// Give writes the order with a verb, bound to the attempt and stage of the rollout that
	// was seen. Once the rollout has come to another attempt or stage it writes nothing.
	Give(ctx context.Context, verb string, seen *v1alpha1.WeightedRollout) error
}

// Order is an order as it stands for one rollout.
type Order struct {
	Verb string `json:"verb"`
	// Short says what it is for, and Effect what would happen now.
	Short  string `json:"short"`
	Effect string `json:"effect"`
	// Refusal says why it makes no sense now; empty: it does.
	Refusal string `json:"-"`
}
