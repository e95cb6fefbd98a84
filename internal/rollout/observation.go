// Package rollout decides what a rollout does next. Decide takes what was
// observed and the time, and returns the new status, what to write to the routes,
// the events, and when to look again. It is pure: it has no client, no logger, no
// clock and no randomness, and never changes its input.
package rollout

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/health"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// Observation is everything that a decision depends on, apart from the time.
type Observation struct {
	// Name of the rollout, for messages.
	Name string
	// Generation of the spec.
	Generation int64
	// Spec and Status as they were read. Neither is ever changed.
	Spec   *v1alpha1.WeightedRolloutSpec
	Status *v1alpha1.WeightedRolloutStatus
	// Deleting is true once the object is marked for deletion.
	Deleting bool
	// Orders are what people ask for by annotation.
	Orders Orders
	// Owner names the older rollout that manages the rules, so that none is left for this
	// one; it is empty if one is.
	Owner string
	// PartOwner names the older rollout that manages some of the rules, or is empty. Those
	// rules are not in Routes, and a route is not if it has no other. Taken names the routes
	// that have such rules.
	PartOwner, Taken string
	// SpecProblem says why the spec cannot be carried out, if that was found
	// outside of this package.
	SpecProblem *route.Problem
	// Routes lists every route of the spec, in its order.
	Routes []Route
	// StableReady and CanaryReady tell whether the Service has a ready endpoint.
	StableReady, CanaryReady bool
	// StableElsewhere and CanaryElsewhere tell whether the Service is in another namespace
	// than the routes, so that a gateway needs a ReferenceGrant to resolve it.
	StableElsewhere, CanaryElsewhere bool
	// StablePods and CanaryPods name what is behind the ready endpoints: the pods' uids,
	// sorted, or the addresses where an endpoint is no pod.
	StablePods, CanaryPods []string
	// StableWorkload and CanaryWorkload are what runs the pods; nil where the spec names none.
	StableWorkload, CanaryWorkload *Workload
	// SameTemplate says that both workloads have the same pod template, apart from labels.
	SameTemplate bool
	// Crossing names a rule of a route that sends to one of the two Services and is not
	// managed, so that the gateway's counts cannot tell its traffic from the rollout's.
	Crossing string
	// Unrecorded says that the API server refuses to store the status, for good.
	Unrecorded bool
	// Verdict is the verdict on the track under test (see Subject) for the present share.
	Verdict health.Verdict
}

// Route is one of the rollout's routes as it was read.
type Route struct {
	Kind v1alpha1.RouteKind
	Name string
	// Found is false if there is no such route; all that follows is then empty.
	Found      bool
	UID        types.UID
	Generation int64
	// Partly says that some of its rules are another rollout's, and not in Inspection.
	Partly bool
	// Mark is what this rollout has left on the route when it could not write its status;
	// nil if there is none.
	Mark *route.Mark
	// Inspection tells which rules are managed and what weights they carry.
	Inspection route.Inspection
	// Acceptance is what the gateways say.
	Acceptance route.Acceptance
	// Writer names the last other field manager that wrote the route, if known.
	Writer string
	// WriteError says why the last write to the route was refused, or is empty.
	WriteError string
	// Overtaken says that the last write to the route did not go through, since another
	// writer's came before it. False where that is not known.
	Overtaken bool
}

// Orders are what people ask for by annotation.
type Orders struct {
	// Abort is the number of the attempt to abort, or 0.
	Abort int64
	// Command is the command in the annotation, if any.
	Command *v1alpha1.Command
	// Problem says what is wrong with an annotation that could not be read.
	Problem string
}

// OrdersFrom reads the annotations of a rollout. What cannot be read is reported
// in Problem and does nothing.
func OrdersFrom(annotations map[string]string) Orders {
	var o Orders
	var problems []string
	if text, ok := annotations[v1alpha1.AbortAnnotation]; ok {
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		if err != nil || n < 1 {
			problems = append(problems, fmt.Sprintf("annotation %s must be the number of the attempt to abort (status.attempt)", v1alpha1.AbortAnnotation))
		} else {
			o.Abort = n
		}
	}
	if text, ok := annotations[v1alpha1.CommandAnnotation]; ok {
		var c v1alpha1.Command
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.ID == "" || len(c.ID) > 253 {
			problems = append(problems, fmt.Sprintf(`annotation %s must be JSON such as {"id":"1","verb":"approve","attempt":1,"stage":0}, with an id of 1 to 253 characters`, v1alpha1.CommandAnnotation))
		} else {
			o.Command = &c
		}
	}
	o.Problem = strings.Join(problems, "; ")
	return o
}
