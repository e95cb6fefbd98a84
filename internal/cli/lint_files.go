package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/weightedrollout/weightedrollout/internal/manifest"
	"github.com/weightedrollout/weightedrollout/internal/manifest/yamltext"
)

// lintSource is a file that lint was given, or a folder with those in it that it checks.
type lintSource struct {
	filename string
	isFolder bool
	files    []lintFile
}

// lintFile is a file that has been read.
type lintFile struct {
	name      string
	documents []yamltext.Document
	// whole holds the same documents; none where one of them is no object.
	whole *manifest.File
	// fault says why the file cannot be checked.
	fault error
}

// readSource reads a file, or those in a folder. It fails only on what cannot be opened
// or read.
func readSource(filename string, streams genericiooptions.IOStreams) (lintSource, error) {
	source := lintSource{filename: filename}
	names := []string{filename}
	if is, err := os.Stat(filename); filename != standardInput && err == nil && is.IsDir() {
		source.isFolder = true
		if names, err = filesIn(filename); err != nil {
			return source, err
		}
	}
	for _, name := range names {
		f, err := readLintFile(name, streams)
		if err != nil {
			return source, err
		}
		source.files = append(source.files, f)
	}
	return source, nil
}

// filesIn lists the files of a folder that can hold objects, in order of their names.
func filesIn(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the folder %s: %w", folder, bare(err))
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			names = append(names, filepath.Join(folder, e.Name()))
		}
	}
	return names, nil
}

func readLintFile(filename string, streams genericiooptions.IOStreams) (lintFile, error) {
	f := lintFile{name: titleOf(filename), whole: &manifest.File{}}
	data, err := open(filename, streams)
	if err != nil {
		return f, err
	}
	defer data.Close()
	text, err := yamltext.Load(data)
	if errors.Is(err, yamltext.ErrTooLong) {
		f.fault = fmt.Errorf("the file is %w: give only the one with the WeightedRollout", err)
		return f, nil
	} else if err != nil {
		return f, fmt.Errorf("read %s: %w", f.name, bare(err))
	}
	if f.documents, f.fault = yamltext.Documents(text); f.fault != nil {
		return f, nil
	}
	if whole, err := manifest.Read(bytes.NewReader(text)); err == nil {
		f.whole = whole
	}
	return f, nil
}
