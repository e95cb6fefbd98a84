package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/internal/manifest"
)

// standardInput is the name of a file that stands for standard input.
const standardInput = "-"

// input says which rollout to look at.
type input struct {
	filename, name string

	// place is the file, and the document in it that holds the rollout, for errors.
	place   string
	file    *manifest.File
	rollout *v1alpha1.WeightedRollout
	// others are further files at hand, in which the kinds of routes are looked up.
	others []*manifest.File
}

func (i *input) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&i.filename, "filename", "f", "", "File that holds the WeightedRollout, in YAML or JSON, alone or among other objects; - reads standard input.")
	flags.StringVar(&i.name, "name", "", "Name of the WeightedRollout, where the file holds several.")
	complete(cmd, "name", nil) // no file's name, which the shell would offer
}

// fileByFlag refuses the name of a file that is given without -f.
func fileByFlag(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%q is no argument of %s: name the file with -f, as in %s -f %s", args[0], cmd.Name(), cmd.CommandPath(), args[0])
}

func (i *input) validate() error {
	if i.filename == "" {
		return errors.New("name the file that holds the WeightedRollout with -f, or - for standard input")
	}
	return nil
}

// read reads the file and fills in the rollout's defaults.
func (i *input) read(streams genericiooptions.IOStreams) error {
	data, err := open(i.filename, streams)
	if err != nil {
		return err
	}
	defer data.Close()
	i.place = titleOf(i.filename)
	if i.file, err = manifest.Read(data); err != nil {
		return fmt.Errorf("%s: %w", i.place, bare(err))
	}
	if n := i.file.Place(i.name); n > 0 {
		i.place += fmt.Sprintf(", document %d", n)
	}
	if i.rollout, err = i.file.Rollout(i.name); err != nil {
		if _, several := errors.AsType[*manifest.SeveralError](err); several {
			return fmt.Errorf("%s: %w, with --name", i.place, err)
		}
		return fmt.Errorf("%s: %w", i.place, err)
	}
	return nil
}

// about says of an error in which file and document the rollout is that it is about.
func (i *input) about(err error) error {
	return fmt.Errorf("%s, WeightedRollout %q: %w", i.place, i.rollout.Name, err)
}

// titleOf names a file for people.
func titleOf(filename string) string {
	if filename == standardInput {
		return "standard input"
	}
	return filename
}

// open opens a file, or standard input.
func open(filename string, streams genericiooptions.IOStreams) (io.ReadCloser, error) {
	if filename == standardInput {
		return io.NopCloser(streams.In), nil
	}
	file, err := os.Open(filename) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	if is, err := file.Stat(); err == nil && is.IsDir() {
		_ = file.Close() // nothing was written
		return nil, fmt.Errorf("%s is a folder: name a file in it", filename)
	}
	return file, nil
}

// bare is an error without the path that it is about, for where that is told already.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
