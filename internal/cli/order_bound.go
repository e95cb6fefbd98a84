package cli

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// binding is what an order can be bound to by its flags.
type binding int

const (
	toNothing binding = iota
	toAttempt
	toStage // and to the attempt
)

// bound is the attempt and the stage that the user means, where the flags name them.
type bound struct {
	attempt int64  // 0: that which is there
	stage   string // such as 2/4; empty: that which is there
}

func (b *bound) bind(cmd *cobra.Command, to binding) {
	fs := cmd.Flags()
	if to != toNothing {
		fs.Int64Var(&b.attempt, "attempt", 0, "Attempt that is meant, from 1: refused if the rollout is in another by now. Default: the present one.")
		complete(cmd, "attempt", nil)
	}
	if to == toStage {
		fs.StringVar(&b.stage, "stage", "", "Stage that is meant, as get shows it, such as 2/4: refused if the rollout is in another by now. Default: the present one.")
		complete(cmd, "stage", nil)
	}
}

// aPosition is how a place in the plan is written.
var aPosition = regexp.MustCompile(`^[1-9][0-9]*/[1-9][0-9]*$`)

func (b *bound) validate(cmd *cobra.Command) error {
	switch {
	case cmd.Flags().Changed("attempt") && b.attempt < 1:
		return fmt.Errorf("--attempt %d is no attempt: give the number that status shows, from 1", b.attempt)
	case cmd.Flags().Changed("stage") && !aPosition.MatchString(b.stage):
		return fmt.Errorf("--stage %q is no stage: give its place in the plan as get shows it, such as 2/4", b.stage)
	}
	return nil
}

// refusal says that a rollout is not where the user thinks; nil: it is.
func (b *bound) refusal(wr *v1alpha1.WeightedRollout) error {
	switch st := &wr.Status; {
	case b.attempt != 0 && b.attempt != st.Attempt:
		return fmt.Errorf("the rollout is in attempt %d, not %d, so nothing was written: look at it again", st.Attempt, b.attempt)
	case b.stage != "" && st.Stage == nil:
		return errors.New("the rollout is in no stage, so nothing was written: look at it again")
	case b.stage != "" && b.stage != positionOf(wr):
		return fmt.Errorf("the rollout is in stage %s, not %s, so nothing was written: look at it again", positionOf(wr), b.stage)
	}
	return nil
}
