package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var commitTime = time.Date(2026, time.March, 2, 9, 0, 0, 0, time.UTC)

// rehearsal is a release whose programs are played: what they are asked for is noted, and
// the files that they would write are there.
func rehearsal(t *testing.T) (*release, *[]string) {
	t.Helper()
	t.Chdir("../..")
	tools := t.TempDir()
	for _, name := range []string{"helm", "kubectl", "image", "cyclonedx-gomod"} {
		write(t, filepath.Join(tools, name), "")
	}
	var asked []string
	r := &release{
		version: "0.2.0", commit: "abc", date: commitTime, tools: tools, out: filepath.Join(t.TempDir(), "out"),
		plugins: []platform{{"linux", "amd64"}, {"windows", "amd64"}}, images: imagePlatforms, log: io.Discard,
	}
	r.run = func(_ context.Context, env []string, name string, args ...string) error {
		asked = append(asked, strings.Join(append([]string{filepath.Base(name)}, args...), " "))
		for i, a := range args[:len(args)-1] {
			if a == "-o" || a == "-output" || a == "--output" {
				write(t, args[i+1], strings.Join(env, " ")+" image: "+imageName+":dev\n")
			}
			if a == "--oci" {
				write(t, filepath.Join(args[i+1], "index.json"), "{}")
			}
		}
		if filepath.Base(name) == "helm" {
			write(t, filepath.Join(args[len(args)-1], "weightedrollout-0.2.0.tgz"), "chart")
		}
		return nil
	}
	return r, &asked
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRelease(t *testing.T) {
	r, asked := rehearsal(t)
	if err := r.make(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := listFiles(r.out)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"checksums.txt", "image/index.json", "install.yaml", "kubectl-weightedrollout_0.2.0.sbom.json",
		"kubectl-weightedrollout_0.2.0_linux_amd64.tar.gz", "kubectl-weightedrollout_0.2.0_windows_amd64.zip",
		"manager_0.2.0.sbom.json", "weightedrollout-0.2.0.tgz", "weightedrollout.krew.yaml",
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files, -want +got:\n%s", diff)
	}
	all := strings.Join(*asked, "\n")
	for _, line := range []string{
		"-X main.version=v0.2.0 -X main.commit=abc -X main.date=2026-03-02T09:00:00Z",
		"./cmd/kubectl-weightedrollout", "./cmd/manager",
		"--tag " + imageName + ":v0.2.0 --revision abc",
		"helm package charts/weightedrollout --version 0.2.0 --app-version v0.2.0",
	} {
		if !strings.Contains(all, line) {
			t.Errorf("%q was not asked for:\n%s", line, all)
		}
	}
	if text := read(t, filepath.Join(r.out, "install.yaml")); !strings.Contains(text, imageName+":v0.2.0") || strings.Contains(text, ":dev") {
		t.Error(text)
	}
	checkSums(t, r.out, want[1:])
	checkKrew(t, r.out)
}

// checkSums holds the list of checksums to the files.
func checkSums(t *testing.T, out string, files []string) {
	t.Helper()
	var listed []string
	for line := range strings.Lines(read(t, filepath.Join(out, checksumFile))) {
		s, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		is, err := sum(filepath.Join(out, name))
		if err != nil || is != s {
			t.Errorf("%s: %s is listed, and is %s, %v", name, s, is, err)
		}
		listed = append(listed, name)
	}
	if diff := cmp.Diff(files, listed); diff != "" {
		t.Errorf("checksums, -want +got:\n%s", diff)
	}
}

// checkKrew holds krew's manifest to the archives.
func checkKrew(t *testing.T, out string) {
	t.Helper()
	var m struct {
		Spec struct {
			Version          string
			ShortDescription string
			Platforms        []struct{ URI, SHA256, Bin string }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(out, "weightedrollout.krew.yaml"))), &m); err != nil {
		t.Fatal(err)
	}
	if m.Spec.Version != "v0.2.0" || len(m.Spec.ShortDescription) > 50 || len(m.Spec.Platforms) != 2 {
		t.Errorf("%+v", m)
	}
	for i, p := range m.Spec.Platforms {
		name := filepath.Base(p.URI)
		if s, err := sum(filepath.Join(out, name)); err != nil || s != p.SHA256 {
			t.Errorf("%s: %v", p.URI, err)
		}
		if !strings.HasPrefix(p.URI, downloads+"/v0.2.0/") || p.Bin != []string{"kubectl-weightedrollout", "kubectl-weightedrollout.exe"}[i] {
			t.Errorf("%+v", p)
		}
	}
}

func TestArchives(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "program"), "a program")
	members := []member{{"program", filepath.Join(dir, "program"), 0o755}}
	for _, name := range []string{"a.tar.gz", "a.zip"} {
		one, two := filepath.Join(dir, "1"+name), filepath.Join(dir, "2"+name)
		for _, path := range []string{one, two} {
			if err := writeArchive(path, members, commitTime); err != nil {
				t.Fatal(err)
			}
		}
		if read(t, one) != read(t, two) {
			t.Errorf("%s: two archives of the same differ", name)
		}
		text, mode := unpack(t, one)
		if text != "a program" || mode != 0o755 {
			t.Errorf("%s: %q, %o", name, text, mode)
		}
	}
	if err := writeArchive(filepath.Join(dir, "b.tar.gz"), []member{{"x", filepath.Join(dir, "missing"), 0o644}}, commitTime); err == nil {
		t.Error("a missing member is no error")
	}
}

// unpack returns the only member of an archive.
func unpack(t *testing.T, path string) (string, os.FileMode) {
	t.Helper()
	raw := []byte(read(t, path))
	if strings.HasSuffix(path, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := z.File[0].Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), z.File[0].Mode().Perm()
	}
	g, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	a := tar.NewReader(g)
	h, err := a.Next()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(a)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), os.FileMode(h.Mode)
}

func TestReleaseFails(t *testing.T) {
	for _, name := range []string{"helm", "kubectl", "image", "cyclonedx-gomod"} {
		t.Run("without "+name, func(t *testing.T) {
			r, _ := rehearsal(t)
			if err := os.Remove(filepath.Join(r.tools, name)); err != nil {
				t.Fatal(err)
			}
			if err := r.make(t.Context()); err == nil || !strings.Contains(err.Error(), "hack/build-tools.sh "+name) {
				t.Error(err)
			}
		})
	}
	t.Run("a program that fails", func(t *testing.T) {
		r, _ := rehearsal(t)
		r.run = func(context.Context, []string, string, ...string) error { return errors.New("no disk") }
		if err := r.make(t.Context()); err == nil || err.Error() != "the plugin's archives: no disk" {
			t.Error(err)
		}
	})
	t.Run("manifests without the image", func(t *testing.T) {
		if _, err := withImage("image: other", "0.2.0"); err == nil {
			t.Error("no error")
		}
	})
}

func TestVersions(t *testing.T) {
	for _, v := range []string{"", "v0.2.0", "0.2", "01.2.3", "1.2.3 ", "latest"} {
		if err := mainRun(t.Context(), []string{"--version", v}); err == nil || !strings.Contains(err.Error(), "semantic version") {
			t.Errorf("%q: %v", v, err)
		}
	}
	for _, v := range []string{"0.2.0", "1.0.0-rc.1"} {
		if !semantic.MatchString(v) {
			t.Errorf("%q is refused", v)
		}
	}
	if !slices.Contains(pluginPlatforms, platform{"darwin", "arm64"}) {
		t.Error("no plugin for the machines that most people have")
	}
}
