package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

const (
	formatWide = "wide"
	formatName = "name"
)

var getFormats = []string{formatTable, formatWide, formatJSON, formatYAML, formatName}

// GetOptions are those of the command get.
type GetOptions struct {
	genericiooptions.IOStreams
	cluster clusterFlags

	name, selector string
	output         output
	now            func() time.Time
}

func newGetCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &GetOptions{IOStreams: streams, now: time.Now}
	cmd := &cobra.Command{
		Use:   "get [NAME]",
		Short: "List rollouts: phase, stage, weight, what the canary really gets, verdict",
		Long: `List rollouts: phase, stage, weight, what the canary really gets, verdict.

The columns are those of kubectl get, and OBSERVED: the canary's part of the requests as
the gateway counts them, or of the weights in the routes where it counts none, when the
status was last written.`,
		Example: `  # The rollouts of a namespace
  kubectl weightedrollout get -n shop

  # All of them, and in words what each waits for
  kubectl weightedrollout get -A -o wide`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: o.cluster.completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 1 {
				if o.name, err = rolloutName(args[0]); err != nil {
					return err
				}
			}
			return o.Run(cmd.Context())
		},
	}
	o.cluster.bind(cmd)
	o.cluster.bindEverywhere(cmd)
	cmd.Flags().StringVarP(&o.selector, "selector", "l", "", "Labels of the rollouts to list, such as team=shop.")
	o.output.bindFormats(cmd, getFormats)
	return cmd
}

// Run lists the rollouts.
func (o *GetOptions) Run(ctx context.Context) error {
	if err := o.output.validate(); err != nil {
		return err
	}
	if o.name != "" && (o.cluster.everywhere || o.selector != "") {
		return errors.New("one rollout is asked for by its name: leave out -A and -l, or the name")
	}
	c, err := o.cluster.connect()
	if err != nil {
		return err
	}
	raw, list, err := o.read(ctx, c)
	if err != nil {
		return err
	}
	switch o.output.format {
	case formatJSON, formatYAML:
		return writeRaw(o.Out, raw, o.output.format)
	case formatName:
		for _, wr := range list {
			if _, err := fmt.Fprintf(o.Out, "weightedrollout.%s/%s\n", v1alpha1.GroupVersion.Group, wr.Name); err != nil {
				return fmt.Errorf("write the output: %w", err)
			}
		}
		return nil
	}
	if len(list) == 0 {
		where := "any namespace"
		if c.namespace != "" {
			where = fmt.Sprintf("the namespace %q", c.namespace)
		}
		_, err := fmt.Fprintf(o.ErrOut, "There is no WeightedRollout in %s.\n", where)
		return err
	}
	return o.output.write(o.Out, nil, func(s *screen) { drawRollouts(s, list, o.cluster.everywhere, o.output.format == formatWide, o.now()) })
}

// read returns the object or list as the API server has it, and the rollouts in it.
func (o *GetOptions) read(ctx context.Context, c *cluster) (json.RawMessage, []v1alpha1.WeightedRollout, error) {
	request := c.aim(c.client.Get(), v1alpha1.GroupVersion.String(), "weightedrollouts")
	if o.name != "" {
		request = request.Name(o.name)
	}
	if o.selector != "" {
		request = request.Param("labelSelector", o.selector)
	}
	var raw json.RawMessage
	err := answer(ctx, request, &raw)
	if o.name == "" && err != nil && !errors.Is(err, errNoSuchKind) {
		return nil, nil, fmt.Errorf("list the WeightedRollouts: %w", err)
	}
	if err != nil {
		return nil, nil, c.explain(o.name, err)
	}
	var list v1alpha1.WeightedRolloutList
	if o.name != "" {
		list.Items = make([]v1alpha1.WeightedRollout, 1)
		err = json.Unmarshal(raw, &list.Items[0])
	} else {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the API server's answer cannot be read: %w", err)
	}
	return raw, list.Items, nil
}

// writeRaw writes what the API server has said, fields that this program does not know
// included.
func writeRaw(w io.Writer, raw json.RawMessage, format string) error {
	var content any
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	err := decoder.Decode(&content)
	if err != nil {
		return fmt.Errorf("the API server's answer cannot be read: %w", err)
	}
	text, err := json.MarshalIndent(content, "", "    ")
	text = append(text, '\n')
	if err == nil && format == formatYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("write the result as %s: %w", format, err)
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// drawRollouts lists rollouts in a table.
func drawRollouts(s *screen, list []v1alpha1.WeightedRollout, everywhere, wide bool, now time.Time) {
	columns := []column{{"NAME", false}, {"PHASE", false}, {"STAGE", false}, {"WEIGHT", true}, {"OBSERVED", true}, {"VERDICT", false}, {"NEXT", true}, {"REVISION", false}, {"AGE", true}}
	if everywhere {
		columns = slices.Insert(columns, 0, column{"NAMESPACE", false})
	}
	if wide {
		columns = append(columns, column{"ATTEMPT", true}, column{"STATUS", false})
		s.width = maxWidth // a message is worth more than a line that fits
	}
	var rows [][]string
	for i := range list {
		wr := &list[i]
		row := rolloutRow(wr, now)
		if everywhere {
			row = slices.Insert(row, 0, wr.Namespace)
		}
		if wide {
			row = append(row, strconv.FormatInt(wr.Status.Attempt, 10), readyMessage(wr))
		}
		rows = append(rows, row)
	}
	s.tableColored(columns, rows, func(row, col int) string {
		switch columns[col].header {
		case "PHASE":
			return colorOf(phaseOf(&list[row]))
		case "VERDICT":
			return verdictColor(rows[row][col])
		}
		return plain
	})
}

// mostRevision is how many columns of a table a revision takes at most: it is any text.
const mostRevision = 24

func shortRevision(revision string) string { return cut(clean(revision), mostRevision) }

func rolloutRow(wr *v1alpha1.WeightedRollout, now time.Time) []string {
	st := &wr.Status
	stage, observed, verdict, next := "–", "–", "–", "–"
	if st.Stage != nil && st.Stage.Position != "" {
		stage = st.Stage.Position
	}
	if st.Share.Observed != nil {
		observed = string(*st.Share.Observed)
	}
	if st.Verdict != nil {
		verdict = string(st.Verdict.State)
	}
	if at := st.NextTransitionTime; at != nil {
		next = "now"
		if at.After(now) {
			next = human(at.Sub(now))
		}
	}
	return []string{wr.Name, string(phaseOf(wr)), stage, string(desiredShare(wr)), observed, verdict, next, shortRevision(st.Revision), human(now.Sub(wr.CreationTimestamp.Time))}
}

func readyMessage(wr *v1alpha1.WeightedRollout) string {
	if c := meta.FindStatusCondition(wr.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Message
	}
	return "the controller has said nothing about it yet"
}
