package cli

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// update brings something new into a view. An error ends the watch.
type update func(*view) error

// gather reads what is new until the context ends, and hands it over in order.
func gather(ctx context.Context, c *cluster, controller evidenceSource, wr *v1alpha1.WeightedRollout) <-chan update {
	g := &gatherer{ctx: ctx, cluster: c, controller: controller, updates: make(chan update), changed: make(chan struct{}, 1)}
	g.latest.Store(wr)
	go g.rollouts(wr.Name)
	go g.evidence()
	go g.events()
	return g.updates
}

type gatherer struct {
	ctx        context.Context
	cluster    *cluster
	controller evidenceSource
	updates    chan update
	latest     atomic.Pointer[v1alpha1.WeightedRollout]
	// changed tells that the rollout has changed, so that there may be events.
	changed chan struct{}
}

func (g *gatherer) send(u update) {
	select {
	case g.updates <- u:
	case <-g.ctx.Done():
	}
}

// rest waits a while, or until the rollout changes. It is false at the end.
func (g *gatherer) rest(d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-g.ctx.Done():
		return false
	case <-changed:
	case <-timer.C:
	}
	return true
}

// rollouts follows the rollout.
func (g *gatherer) rollouts(name string) {
	err := g.cluster.follow(g.ctx, name, func(wr *v1alpha1.WeightedRollout) bool {
		g.latest.Store(wr)
		select {
		case g.changed <- struct{}{}:
		default:
		}
		g.send(func(v *view) error { v.rollout, v.trouble = wr, nil; return nil })
		return g.ctx.Err() != nil
	}, func(err error) {
		g.send(func(v *view) error { v.trouble = err; return nil })
	})
	if err != nil {
		g.send(func(*view) error { return err })
	}
}

// evidence asks for the live evidence, again and again.
func (g *gatherer) evidence() {
	for {
		document, err := g.controller.ask(g.ctx, g.latest.Load())
		g.send(func(v *view) error { v.document, v.documentErr = document, err; return nil })
		pause := evidenceEvery
		if err != nil && !mayAsk(err) {
			pause *= 10 // a right may still be given
		}
		if !g.rest(pause, nil) {
			return
		}
	}
}

// events reads the events after each change.
func (g *gatherer) events() {
	for {
		events, err := g.cluster.events(g.ctx, g.latest.Load())
		g.send(func(v *view) error { v.events, v.eventsErr = events, err; return nil })
		if !g.rest(eventsEvery, g.changed) {
			return
		}
	}
}
