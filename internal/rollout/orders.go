package rollout

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// reportOrders adds to the message what is wrong with the orders for as long as it is, and
// tells of it when it is new there. A command that can be read is answered by takeCommand.
func (d *draft) reportOrders() {
	var told string
	if c := meta.FindStatusCondition(d.obs.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		told = c.Message
	}
	problems := []string{""}
	for _, problem := range []string{d.obs.Orders.Problem, d.idleAbort()} {
		if problem == "" {
			continue
		}
		problems = append(problems, problem)
		if !strings.Contains(told, problem) {
			d.event(true, v1alpha1.ReasonCommandIgnored, "%s", problem)
		}
	}
	// They must not be cut off: by them it is known that they were told.
	text := strings.Join(problems, "; ")
	d.message = clipTo(d.message, messageLimit-utf8.RuneCountInString(text)) + text
}

// idleAbort says that an abort is for another attempt than the present one, or is empty.
// An abort stays where it is after it has been carried out, so one for an attempt that was
// rolled back, or so old that it is not in the history, is nothing to speak of.
func (d *draft) idleAbort() string {
	abort, attempt := d.obs.Orders.Abort, d.status.Attempt
	endedOtherwise := func(r v1alpha1.AttemptRecord) bool {
		return r.Attempt == abort && r.Outcome != v1alpha1.OutcomeRolledBack
	}
	switch {
	case abort > 0 && abort == attempt && !d.open() && d.status.Outcome != v1alpha1.OutcomeRolledBack:
		return fmt.Sprintf("annotation %s is for attempt %d, which is over: it aborts nothing", v1alpha1.AbortAnnotation, abort)
	case abort > attempt:
		return fmt.Sprintf("annotation %s is for attempt %d, and this is attempt %d: it aborts nothing now, and attempt %d as soon as it begins", v1alpha1.AbortAnnotation, abort, attempt, abort)
	case abort > 0 && abort < attempt && slices.ContainsFunc(d.status.History, endedOtherwise):
		return fmt.Sprintf("annotation %s is for attempt %d, and this is attempt %d: it aborts nothing", v1alpha1.AbortAnnotation, abort, attempt)
	}
	return ""
}
