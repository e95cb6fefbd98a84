// Command release makes everything that a release consists of, from a clean checkout, and
// publishes nothing:
//
//	release --version 0.2.0 --out dist/release
//
// Archives of the kubectl plugin for every platform, an image of the controller for
// linux/amd64 and linux/arm64 (an OCI layout), the chart, an install file, bills of
// materials, the manifest for krew, and the checksums of them all. The same commit and
// the same Go give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// semantic is what a version must look like: helm and krew accept nothing else.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// repository is where an image and the archives of a release are found.
const (
	imageName = "ghcr.io/weightedrollout/weightedrollout"
	downloads = "https://github.com/weightedrollout/weightedrollout/releases/download"
)

// platform is an operating system and a processor, by Go's names.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// Platforms of the plugin and of the image.
var (
	pluginPlatforms = []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}
	imagePlatforms  = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
)

// release is what is being made.
type release struct {
	version string
	commit  string
	date    time.Time // of the commit
	tools   string    // folder with helm, kubectl, image and cyclonedx-gomod
	out     string
	plugins []platform
	images  []platform
	run     func(ctx context.Context, env []string, name string, args ...string) error
	log     io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := mainRun(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to do
	}
}

func mainRun(ctx context.Context, args []string) error {
	r := &release{plugins: pluginPlatforms, images: imagePlatforms, run: runCommand, log: os.Stdout}
	fs := flag.NewFlagSet("release", flag.ContinueOnError)
	fs.StringVar(&r.version, "version", "", "Version to release, such as 0.2.0 or 0.2.0-rc.1; without a v.")
	fs.StringVar(&r.out, "out", "dist/release", "Folder to write to. What is in it is removed first.")
	fs.StringVar(&r.tools, "tools", "bin", "Folder with helm, kubectl, image and cyclonedx-gomod.")
	here := fs.Bool("this-platform", false, "Build the plugin for this platform and the image for linux/amd64 only: a quick rehearsal.")
	dirty := fs.Bool("allow-dirty", false, "Release what is not committed, too: for a rehearsal.")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("%q is not understood: every argument has a flag", fs.Arg(0))
	}
	if !semantic.MatchString(r.version) {
		return fmt.Errorf("--version %q is no semantic version: give one such as 0.2.0", r.version)
	}
	if *here {
		r.plugins, r.images = thisPlatform(), imagePlatforms[:1]
	}
	if err := r.identify(ctx, *dirty); err != nil {
		return err
	}
	return r.make(ctx)
}

// make makes everything, in the order in which one thing needs another.
func (r *release) make(ctx context.Context) error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // it is to be read by all
		return err
	}
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	steps := []struct {
		what string
		do   func(context.Context, string) error
	}{
		{"the plugin's archives", r.plugin},
		{"the controller's image", r.image},
		{"the chart", r.chart},
		{"the install file", r.installFile},
		{"the bills of materials", r.materials},
		{"the manifest for krew", r.krew},
		{"the checksums", r.checksums},
	}
	for i, s := range steps {
		from := time.Now()
		if err := s.do(ctx, work); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		_, _ = fmt.Fprintf(r.log, "%d/%d  %-24s %4.0f s\n", i+1, len(steps), s.what, time.Since(from).Seconds())
	}
	files, err := listFiles(r.out)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(r.log, "\n%s, from commit %s of %s:\n", r.version, r.commit, r.date.Format(time.DateOnly))
	for _, f := range files {
		info, err := os.Stat(filepath.Join(r.out, f))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(f, "image/") {
			_, _ = fmt.Fprintf(r.log, "  %9d  %s\n", info.Size(), filepath.Join(r.out, f))
		}
	}
	return nil
}

// listFiles are the files below a folder, by their paths in it, sorted.
func listFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		files = append(files, filepath.ToSlash(rel))
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New("nothing was made")
	}
	return files, err
}
