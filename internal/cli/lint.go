package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
)

// LintOptions are those of the command lint.
type LintOptions struct {
	genericiooptions.IOStreams
	output output

	filenames []string
	rps       float64
	strict    bool
	knowsRPS  bool
}

func newLintCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &LintOptions{IOStreams: streams}
	cmd := &cobra.Command{
		Use:   "lint -f FILE [-f FILE ...]",
		Short: "Check files as the API server would, without one, and look for doubtful plans",
		Long: `Check files as the API server would, without one, and look for doubtful plans.

Every WeightedRollout in the files is checked by the schema and the rules of the CRD, and
its plan for what cannot work as written: the warnings of plan. Each problem is told with
the file, the number of the document, the field, and what to do. Other objects are passed
over; of routes in the same file the rules are looked at, and of those in all files the
kinds and the names. Of a folder, the files in it are checked whose names end with .yaml,
.yml or .json, and those of the folders below are not. A file without a WeightedRollout is
an error, unless it is one of a folder.

The exit code is 1 if there is an error, or with --strict a warning.`,
		Example: `  # Before a commit
  kubectl weightedrollout lint -f config/samples/first.yaml -f config/samples/checks.yaml

  # All files of a folder
  kubectl weightedrollout lint -f config/samples

  # In CI: a warning is an error, and the traffic is known
  kubectl weightedrollout lint -f config/samples/first.yaml --rps 200 --strict`,
		Args: fileByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.knowsRPS = cmd.Flags().Changed("rps")
			return o.Run()
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVarP(&o.filenames, "filename", "f", nil, "File to check, in YAML or JSON, or folder whose .yaml, .yml and .json files to check; may be repeated; - reads standard input.")
	fs.Float64Var(&o.rps, "rps", 0, "Requests per second of stable and canary together. Default: not known.")
	bindStrict(fs, &o.strict)
	o.output.bind(cmd)
	return cmd
}

// Remark is something that lint has found.
type Remark struct {
	File string `json:"file"`
	// Document counts the documents of the file from 1; 0: it is about the whole file.
	Document int `json:"document,omitempty"`
	// Object is the name of the WeightedRollout.
	Object string `json:"object,omitempty"`
	// Severity is error, warning, or note, which is about the check itself.
	Severity string `json:"severity"`
	// Message names the field, what is wrong with it, and the cure.
	Message string `json:"message"`
}

const (
	severityError   = "error"
	severityWarning = "warning"
	severityNote    = "note"
)

// Lint is what lint has found in all.
type Lint struct {
	Rollouts int      `json:"rollouts"`
	Errors   int      `json:"errors"`
	Warnings int      `json:"warnings"`
	Remarks  []Remark `json:"remarks"`
}

func (l *Lint) add(severity, file string, document int, object, format string, args ...any) {
	l.Remarks = append(l.Remarks, Remark{file, document, object, severity, fmt.Sprintf(format, args...)})
	switch severity {
	case severityError:
		l.Errors++
	case severityWarning:
		l.Warnings++
	}
}

// Run checks the files.
func (o *LintOptions) Run() error {
	if len(o.filenames) == 0 {
		return errors.New("name the files to check with -f, or - for standard input")
	}
	if err := validRPS(o.rps, o.knowsRPS); err != nil {
		return err
	}
	if err := o.output.validate(); err != nil {
		return err
	}
	found := &Lint{Remarks: []Remark{}}
	if err := o.check(found); err != nil {
		return err
	}
	if err := o.output.write(o.Out, found, func(s *screen) { drawLint(s, found) }); err != nil {
		return err
	}
	if found.Errors > 0 || o.strict && found.Warnings > 0 {
		return exitWith(exitFailed, nil)
	}
	return nil
}

// check reads all files, and then checks one after the other.
func (o *LintOptions) check(found *Lint) error {
	var sources []lintSource
	var whole []*manifest.File
	for _, filename := range o.filenames {
		source, err := readSource(filename, o.IOStreams)
		if err != nil {
			return err
		}
		for _, f := range source.files {
			whole = append(whole, f.whole)
		}
		sources = append(sources, source)
	}
	for _, source := range sources {
		before := found.Rollouts + len(found.Remarks)
		for _, f := range source.files {
			o.file(found, f, whole, !source.isFolder)
		}
		if source.isFolder && found.Rollouts+len(found.Remarks) == before {
			found.add(severityError, source.filename, 0, "", "no WeightedRollout is in the %s of the folder that end with .yaml, .yml or .json; those below it are not looked at: name the folder or the file that holds one", plural(len(source.files), "file", "files"))
		}
	}
	return nil
}

// file checks one file, in which there has to be a rollout if that is demanded, with the
// others at hand.
func (o *LintOptions) file(found *Lint, f lintFile, others []*manifest.File, demanded bool) {
	if f.fault != nil {
		found.add(severityError, f.name, 0, "", "%v", f.fault)
		return
	}
	before := found.Rollouts
	for i, d := range f.documents {
		for _, object := range rolloutsIn(d.JSON) {
			found.Rollouts++
			o.object(found, Remark{File: f.name, Document: i + 1}, object, d.Repeated, input{file: f.whole, others: others})
		}
	}
	if demanded && found.Rollouts == before {
		found.add(severityError, f.name, 0, "", "the file holds no WeightedRollout with apiVersion %s: correct apiVersion and kind, or leave the file out", v1alpha1.GroupVersion)
	}
}

// rolloutsIn returns the rollouts in a document: itself, or the items of a list.
func rolloutsIn(document []byte) []json.RawMessage {
	var object struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	if json.Unmarshal(document, &object) != nil {
		return nil
	}
	group, _, _ := strings.Cut(object.APIVersion, "/")
	if object.Kind == "WeightedRollout" && group == v1alpha1.GroupVersion.Group {
		return []json.RawMessage{document}
	}
	var all []json.RawMessage
	if strings.HasSuffix(object.Kind, "List") {
		for _, item := range object.Items {
			all = append(all, rolloutsIn(item)...)
		}
	}
	return all
}

// object checks one rollout, whose place the remark names, and then its plan.
func (o *LintOptions) object(found *Lint, at Remark, object []byte, repeated []string, in input) {
	var named struct {
		Metadata struct{ Name, GenerateName string }
	}
	_ = json.Unmarshal(object, &named) // metadata of another shape is told below
	name := named.Metadata.Name
	if name == "" {
		name = named.Metadata.GenerateName
	}
	for _, problem := range repeated {
		found.add(severityError, at.File, at.Document, name, "%s: leave it once", problem)
	}
	rollout, err := manifest.Decode(bytes.NewReader(object), "")
	if invalid, ok := errors.AsType[*manifest.InvalidError](err); ok {
		for _, problem := range invalid.Problems {
			found.add(severityError, at.File, at.Document, name, "%s", problem)
		}
		if invalid.Incomplete {
			found.add(severityNote, at.File, at.Document, name, "%s", manifest.IncompleteNote)
		}
		return
	}
	if err != nil {
		found.add(severityError, at.File, at.Document, name, "%v", err)
		return
	}
	in.rollout = rollout
	plan, err := in.plan(o.rps, defaultErrorPercent)
	if err != nil {
		found.add(severityError, at.File, at.Document, name, "%v", err)
		return
	}
	if plan.Stalled != nil {
		found.add(severityError, at.File, at.Document, name, "it never starts: %s", reasoned(plan.Stalled.Reason, plan.Stalled.Message))
	}
	for _, w := range plan.Warnings {
		if plan.Stalled != nil && strings.Contains(plan.Stalled.Message, w.Message) {
			continue // it has been told
		}
		found.add(severityWarning, at.File, at.Document, name, "%s", w)
	}
}

// drawLint writes a line per remark, as compilers do, and a sum.
func drawLint(s *screen, l *Lint) {
	for _, r := range l.Remarks {
		where := r.File
		if r.Document > 0 {
			where += fmt.Sprintf(", document %d", r.Document)
		}
		if r.Object != "" {
			where += fmt.Sprintf(", WeightedRollout %q", r.Object)
		}
		color := map[string]string{severityError: red, severityWarning: yellow, severityNote: plain}[r.Severity]
		s.raw(clean(where) + ": " + s.paint(color, r.Severity))
		s.indented("", "%s", r.Message)
	}
	sum := fmt.Sprintf("%s checked: %s, %s", plural(l.Rollouts, "WeightedRollout", "WeightedRollouts"), plural(l.Errors, "error", "errors"), plural(l.Warnings, "warning", "warnings"))
	color := green
	if l.Errors > 0 {
		color = red
	} else if l.Warnings > 0 {
		color = yellow
	}
	s.line(color, sum+".")
}
