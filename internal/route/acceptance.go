package route

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// ConfirmMode says what counts as a gateway's confirmation.
type ConfirmMode int

const (
	// ConfirmGeneration needs conditions that are about the route's present
	// generation. It is the default.
	ConfirmGeneration ConfirmMode = iota
	// ConfirmAccepted takes the conditions whatever generation they are about, for
	// gateways that never report one.
	ConfirmAccepted
)

// ParseConfirmMode reads "generation" or "accepted". It fails on any other text.
func ParseConfirmMode(text string) (ConfirmMode, error) {
	for _, mode := range []ConfirmMode{ConfirmGeneration, ConfirmAccepted} {
		if text == mode.String() {
			return mode, nil
		}
	}
	return ConfirmGeneration, fmt.Errorf("%q is no way to confirm a route: write %s or %s", text, ConfirmGeneration, ConfirmAccepted)
}

// String returns the text that ParseConfirmMode reads.
func (m ConfirmMode) String() string {
	if m == ConfirmAccepted {
		return "accepted"
	}
	return "generation"
}

// AcceptanceState says whether the gateways took a route.
type AcceptanceState string

const (
	// Confirmed says that every gateway serves the route in its present generation.
	Confirmed AcceptanceState = "Confirmed"
	// Pending says that a gateway has not said so yet, or never will.
	Pending AcceptanceState = "Pending"
	// NotAccepted says that a gateway does not accept the present generation.
	NotAccepted AcceptanceState = "NotAccepted"
	// NotResolved says that a gateway cannot resolve a backend of the present generation.
	NotResolved AcceptanceState = "NotResolved"
)

// bySeverity orders the states: the first one that any gateway gives is the route's.
var bySeverity = []AcceptanceState{NotAccepted, NotResolved, Pending, Confirmed}

// Acceptance is what a route's gateways say of it.
type Acceptance struct {
	State AcceptanceState
	// Message says which gateway and controller, and why. It is stable, sorted, and
	// at most 500 bytes long.
	Message string
	// Note says whose reports did not count, and where it is not known whose do. It is
	// empty where there is nothing to say, and else like Message.
	Note string
	// Unresolved says that a gateway cannot resolve a backend of the present generation,
	// also where State is NotAccepted because of another gateway.
	Unresolved bool
	// Generation is the route's metadata.generation, which State is about.
	Generation int64
}

// Reason returns the v1alpha1 reason that goes with the state.
func (a Acceptance) Reason() string {
	switch a.State {
	case Confirmed:
		return v1alpha1.ReasonAccepted
	case NotAccepted:
		return v1alpha1.ReasonNotAccepted
	case NotResolved:
		return v1alpha1.ReasonNotResolved
	case Pending:
	}
	return v1alpha1.ReasonRouteNotConfirmed
}

// Accepted reads what the gateways say of r. It is Confirmed if every entry of
// spec.parentRefs has an entry in status.parents that counts, and in every such entry
// Accepted and ResolvedRefs are True and about the present generation. The i-th of the
// servers says whose entries count for the i-th parentRef; where there is none, anybody's
// do (several controllers may report on one parent). Entries that the spec does not name
// are ignored: a controller may leave them behind. A condition about an older generation
// says nothing of this one, whatever its status, so it is Pending. A nil route and one
// that is attached to nothing are Pending.
func Accepted(r *Object, mode ConfirmMode, servers []Server) Acceptance {
	if r == nil {
		return Acceptance{State: Pending, Message: "the route does not exist"}
	}
	said := findings{}
	var notes []string
	for i, ref := range r.ParentRefs {
		var by Server
		if i < len(servers) {
			by = servers[i]
		}
		notes = append(notes, said.readParent(r, parentOf(ref, r.Namespace), by, mode)...)
	}
	a := Acceptance{State: Pending, Note: joined("", notes), Unresolved: len(said[NotResolved]) > 0, Generation: r.Generation}
	for _, state := range bySeverity {
		if len(said[state]) > 0 {
			a.State, a.Message = state, said.message(state)
			return a
		}
	}
	a.Message = "the route is attached to no gateway: spec.parentRefs is empty"
	return a
}

// readParent judges what is reported on one parent, and returns what is worth a note.
func (f findings) readParent(r *Object, p parent, by Server, mode ConfirmMode) (notes []string) {
	if by.Problem != "" {
		f.add(Pending, "%s", by.Problem)
		return nil
	}
	reported := false
	var others []string
	for _, status := range r.Parents {
		switch {
		case parentOf(status.ParentRef, r.Namespace) != p:
		case by.counts(status.ControllerName):
			reported = true
			f.read(status, p, r.Generation, mode)
		default:
			others = append(others, bounded(string(status.ControllerName), maxQuoted))
		}
	}
	slices.Sort(others)
	if !reported {
		f.add(Pending, "%s", by.missing(p, others))
		return nil
	}
	for _, other := range others {
		notes = append(notes, fmt.Sprintf("what controller %s reports on %s does not count: %s names another", other, p, by.Source))
	}
	if by.Doubt != "" {
		notes = append(notes, by.Doubt)
	}
	return notes
}

// findings are sentences about parents, by the state that they speak for.
type findings map[AcceptanceState][]string

func (f findings) add(state AcceptanceState, format string, args ...any) {
	f[state] = append(f[state], fmt.Sprintf(format, args...))
}

func (f findings) message(state AcceptanceState) string {
	if state == Confirmed {
		return joined("accepted by ", f[state])
	}
	return joined("", f[state])
}

// joined joins sentences, sorted and each once.
func joined(prefix string, sentences []string) string {
	return bounded(prefix+strings.Join(slices.Compact(slices.Sorted(slices.Values(sentences))), "; "), maxMessage)
}

// read judges one entry of status.parents.
func (f findings) read(status gatewayv1.RouteParentStatus, p parent, generation int64, mode ConfirmMode) {
	who := fmt.Sprintf("%s (controller %s)", p, bounded(string(status.ControllerName), maxQuoted))
	confirmed := true
	for _, kind := range []struct {
		condition gatewayv1.RouteConditionType
		failed    AcceptanceState
	}{
		{gatewayv1.RouteConditionAccepted, NotAccepted},
		{gatewayv1.RouteConditionResolvedRefs, NotResolved},
	} {
		condition := meta.FindStatusCondition(status.Conditions, string(kind.condition))
		state, text := judge(condition, kind.condition, kind.failed, generation, mode)
		if state != Confirmed {
			confirmed = false
			f.add(state, "%s %s", who, text)
		}
	}
	if confirmed {
		f.add(Confirmed, "%s", who)
	}
}

// judge says what one condition means for the present generation, and why. The text
// has no generation numbers: a gateway that trails behind would change it, and the
// status that carries it, again and again.
func judge(c *metav1.Condition, kind gatewayv1.RouteConditionType, failed AcceptanceState, generation int64, mode ConfirmMode) (AcceptanceState, string) {
	if c == nil {
		return Pending, fmt.Sprintf("does not report %s", kind)
	}
	said := ""
	if c.Status != metav1.ConditionTrue {
		said = fmt.Sprintf("%s is %s: %s: %s", kind, c.Status, bounded(c.Reason, maxQuoted), bounded(c.Message, maxQuoted))
	}
	if mode != ConfirmAccepted && (c.ObservedGeneration == 0 || c.ObservedGeneration < generation) {
		text := "has not seen the present generation of the route"
		if c.ObservedGeneration == 0 {
			text = "reports no generation, so it is not known which one it speaks of"
		}
		if said != "" {
			text += ": " + said
		}
		return Pending, text
	}
	switch {
	case c.Status == metav1.ConditionTrue:
		return Confirmed, ""
	case c.Status == metav1.ConditionFalse:
		return failed, "says: " + said
	case kind == gatewayv1.RouteConditionAccepted && c.Reason != string(gatewayv1.RouteReasonPending):
		return failed, "says: " + said
	}
	// The controller has not made up its mind; by the Gateway API, Pending says that
	// it has not looked yet.
	return Pending, "says: " + said
}
