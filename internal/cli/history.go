package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// HistoryOptions are those of the command history.
type HistoryOptions struct {
	genericiooptions.IOStreams
	cluster clusterFlags
	output  output

	name string
	now  func() time.Time
}

func newHistoryCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &HistoryOptions{IOStreams: streams, now: time.Now}
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "List the attempts of a rollout: how each ended, at which share, and why",
		Long: `List the attempts of a rollout: how each ended, at which share, and why.

The newest comes first, and is the present one if it has not ended. The status keeps the
last 10 that have.`,
		Example: `  # How did the last ones end?
  kubectl weightedrollout history checkout -n shop`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: o.cluster.completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.name, err = oneName(cmd, args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.cluster.bind(cmd)
	o.output.bind(cmd)
	return cmd
}

// Attempt is one walk through the plan.
type Attempt struct {
	Attempt  int64  `json:"attempt"`
	Revision string `json:"revision"`
	// Outcome is InProgress, or how it ended, and Reason and Message say why.
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Weight is the canary's share in percent, when it ended.
	Weight    string     `json:"weight,omitempty"`
	StartedAt *time.Time `json:"startedAt,omitempty"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}

// Run lists the attempts.
func (o *HistoryOptions) Run(ctx context.Context) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	c, err := o.cluster.connect()
	if err != nil {
		return err
	}
	wr, err := c.rollout(ctx, o.name)
	if err != nil {
		return err
	}
	found := attempts(wr)
	return o.output.write(o.Out, struct {
		Attempts []Attempt `json:"attempts"`
	}{found}, func(s *screen) { drawAttempts(s, wr, found, o.now()) })
}

// attempts lists the attempts, the newest first.
func attempts(wr *v1alpha1.WeightedRollout) []Attempt {
	st := &wr.Status
	found := []Attempt{}
	if st.Attempt > 0 && (len(st.History) == 0 || st.History[0].Attempt != st.Attempt) {
		found = append(found, Attempt{
			Attempt: st.Attempt, Revision: st.Revision, Outcome: string(st.Outcome), Reason: st.OutcomeReason, Message: st.OutcomeMessage,
			Weight: percentOf(st.Share.Desired), StartedAt: timeOf(st.StartedAt),
		})
	}
	for _, h := range st.History {
		found = append(found, Attempt{
			Attempt: h.Attempt, Revision: h.Revision, Outcome: string(h.Outcome), Reason: h.Reason, Message: h.Message,
			Weight: percentOf(h.Weight), StartedAt: timeOf(h.StartedAt), EndedAt: timeOf(&h.EndedAt),
		})
	}
	return found
}

func percentOf(p *v1alpha1.Percent) string {
	if p == nil {
		return ""
	}
	return string(*p)
}

func timeOf(t *metav1.MicroTime) *time.Time {
	if t == nil || t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// took is how long an attempt has gone on, or did.
func (a Attempt) took(now time.Time) string {
	if a.StartedAt == nil {
		return "–"
	}
	if a.EndedAt != nil {
		now = *a.EndedAt
	}
	return human(now.Sub(*a.StartedAt))
}

func drawAttempts(s *screen, wr *v1alpha1.WeightedRollout, found []Attempt, now time.Time) {
	if len(found) == 0 {
		s.prose(0, "There has been no attempt of WeightedRollout %s/%s yet.", wr.Namespace, wr.Name)
		return
	}
	var rows [][]string
	for _, a := range found {
		ended := "–"
		if a.EndedAt != nil {
			ended = human(now.Sub(*a.EndedAt)) + " ago"
		}
		rows = append(rows, []string{strconv.FormatInt(a.Attempt, 10), shortRevision(a.Revision), a.Outcome, a.Weight, a.took(now), ended, reasoned(a.Reason, a.Message)})
	}
	s.tableColored([]column{{"ATTEMPT", true}, {"REVISION", false}, {"OUTCOME", false}, {"WEIGHT", true}, {"TOOK", true}, {"ENDED", true}, {"WHY", false}}, rows, func(row, col int) string {
		if col != 2 {
			return plain
		}
		switch v1alpha1.Outcome(found[row].Outcome) {
		case v1alpha1.OutcomeRolledBack:
			return red
		case v1alpha1.OutcomePromoted, v1alpha1.OutcomeCompleted:
			return green
		case v1alpha1.OutcomeInProgress, v1alpha1.OutcomeReturning:
			return cyan
		case v1alpha1.OutcomeSuperseded:
		}
		return plain
	})
}
