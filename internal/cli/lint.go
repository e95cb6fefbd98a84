package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
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
over; of routes in the same file the rules are looked at. Of a folder, the files in it are
checked whose names end with .yaml, .yml or .json, and those of the folders below are not.

The exit code is 1 if there is an error, or with --strict a warning.`,
		Example: `  # Before a commit
  kubectl weightedrollout lint -f config/samples/first.yaml -f config/samples/checks.yaml

  # All files of a folder
  kubectl weightedrollout lint -f config/samples

  # In CI: a warning is an error, and the traffic is known
  kubectl weightedrollout lint -f config/samples/first.yaml --rps 200 --strict`,
		Args: cobra.NoArgs,
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
	// Severity is error or warning.
	Severity string `json:"severity"`
	// Message names the field, what is wrong with it, and the cure.
	Message string `json:"message"`
}

const (
	severityError   = "error"
	severityWarning = "warning"
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
	if severity == severityError {
		l.Errors++
	} else {
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
	for _, filename := range o.filenames {
		if err := o.files(found, filename); err != nil {
			return err
		}
	}
	if err := o.output.write(o.Out, found, func(s *screen) { drawLint(s, found) }); err != nil {
		return err
	}
	if found.Errors > 0 || o.strict && found.Warnings > 0 {
		return exitWith(exitFailed, nil)
	}
	return nil
}

// files checks a file, or those in a folder. Of the latter some may hold other things.
func (o *LintOptions) files(found *Lint, filename string) error {
	is, err := os.Stat(filename)
	if filename == standardInput || err != nil || !is.IsDir() {
		return o.file(found, filename, true)
	}
	entries, err := os.ReadDir(filename) // sorted by name
	if err != nil {
		return fmt.Errorf("read the folder %s: %w", filename, bare(err))
	}
	before, read := found.Rollouts+len(found.Remarks), 0
	for _, e := range entries {
		if e.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			continue
		}
		read++
		if err := o.file(found, filepath.Join(filename, e.Name()), false); err != nil {
			return err
		}
	}
	if found.Rollouts+len(found.Remarks) == before {
		found.add(severityError, filename, 0, "", "no WeightedRollout is in the %s of the folder that end with .yaml, .yml or .json; those below it are not looked at: name the folder or the file that holds one", plural(read, "file", "files"))
	}
	return nil
}

// file checks one file, in which there has to be a rollout if that is demanded. It fails
// only if the file cannot be opened or read.
func (o *LintOptions) file(found *Lint, filename string, demanded bool) error {
	data, err := open(filename, o.IOStreams)
	if err != nil {
		return err
	}
	defer data.Close()
	name := filename
	if name == standardInput {
		name = "standard input"
	}
	text, err := yamltext.Load(data)
	if errors.Is(err, yamltext.ErrTooLong) {
		found.add(severityError, name, 0, "", "the file is %v: give only the one with the WeightedRollout", err)
		return nil
	} else if err != nil {
		return fmt.Errorf("read %s: %w", name, bare(err))
	}
	documents, err := yamltext.Documents(text)
	if err != nil {
		found.add(severityError, name, 0, "", "%v", err)
		return nil
	}
	before := found.Rollouts
	whole, _ := manifest.Read(bytes.NewReader(text)) // its faults are told below
	for i, d := range documents {
		for _, object := range rolloutsIn(d.JSON) {
			found.Rollouts++
			o.object(found, name, i+1, object, d.Repeated, whole)
		}
	}
	if demanded && found.Rollouts == before {
		found.add(severityError, name, 0, "", "the file holds no WeightedRollout with apiVersion %s: correct apiVersion and kind, or leave the file out", v1alpha1.GroupVersion)
	}
	return nil
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

// object checks one rollout, and then its plan.
func (o *LintOptions) object(found *Lint, file string, document int, object []byte, repeated []string, whole *manifest.File) {
	var named struct {
		Metadata struct{ Name, GenerateName string }
	}
	_ = json.Unmarshal(object, &named) // metadata of another shape is told below
	name := named.Metadata.Name
	if name == "" {
		name = named.Metadata.GenerateName
	}
	for _, problem := range repeated {
		found.add(severityError, file, document, name, "%s: leave it once", problem)
	}
	rollout, err := manifest.Decode(bytes.NewReader(object), "")
	if invalid, ok := errors.AsType[*manifest.InvalidError](err); ok {
		for _, problem := range invalid.Problems {
			found.add(severityError, file, document, name, "%s", problem)
		}
		return
	}
	if err != nil {
		found.add(severityError, file, document, name, "%v", err)
		return
	}
	in := input{file: whole, rollout: rollout}
	if whole == nil {
		in.file = &manifest.File{}
	}
	plan, err := in.plan(o.rps, defaultErrorPercent)
	if err != nil {
		found.add(severityError, file, document, name, "%v", err)
		return
	}
	if plan.Stalled != nil {
		found.add(severityError, file, document, name, "it never starts: %s", reasoned(plan.Stalled.Reason, plan.Stalled.Message))
	}
	for _, w := range plan.Warnings {
		if plan.Stalled != nil && strings.Contains(plan.Stalled.Message, w.Message) {
			continue // it has been told
		}
		found.add(severityWarning, file, document, name, "%s", w)
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
		color := yellow
		if r.Severity == severityError {
			color = red
		}
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
