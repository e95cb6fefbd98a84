package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

func thisPlatform() []platform { return []platform{{runtime.GOOS, runtime.GOARCH}} }

// runCommand runs a program; its output is shown if it fails.
func runCommand(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // a tool of the build
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// identify finds the commit, and refuses one that is not all there is.
func (r *release) identify(ctx context.Context, dirty bool) error {
	out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H %cI").Output()
	if err != nil {
		return fmt.Errorf("ask git for the commit: %w", err)
	}
	commit, date, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if r.date, err = time.Parse(time.RFC3339, date); err != nil {
		return fmt.Errorf("read the commit's date: %w", err)
	}
	r.commit, r.date = commit, r.date.UTC()
	if dirty {
		return nil
	}
	out, err = exec.CommandContext(ctx, "git", "status", "--porcelain").Output()
	if err != nil {
		return fmt.Errorf("ask git what is not committed: %w", err)
	}
	if len(out) > 0 {
		return errors.New("there are changes that are not committed: commit them, or rehearse with --allow-dirty")
	}
	return nil
}

// compile builds one of our programs, statically and reproducibly.
func (r *release) compile(ctx context.Context, pkg, out string, p platform) error {
	flags := fmt.Sprintf("-s -w -buildid= -X main.version=v%s -X main.commit=%s -X main.date=%s", r.version, r.commit, r.date.Format(time.RFC3339))
	env := []string{"CGO_ENABLED=0", "GOWORK=off", "GOOS=" + p.os, "GOARCH=" + p.arch}
	return r.run(ctx, env, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", out, pkg)
}

// tool is the path of a program that was built beforehand.
func (r *release) tool(name string) (string, error) {
	path := filepath.Join(r.tools, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s is not there: run hack/build-tools.sh %s", path, name)
	}
	return filepath.Abs(path)
}

// plugin builds the kubectl plugin for every platform, an archive each.
func (r *release) plugin(ctx context.Context, work string) error {
	for _, p := range r.plugins {
		name := "kubectl-weightedrollout"
		if p.os == "windows" {
			name += ".exe"
		}
		binary := filepath.Join(work, p.os+"-"+p.arch, name)
		if err := r.compile(ctx, "./cmd/kubectl-weightedrollout", binary, p); err != nil {
			return err
		}
		members := []member{{name, binary, 0o755}, {"LICENSE", "LICENSE", 0o644}}
		if err := writeArchive(filepath.Join(r.out, r.archive(p)), members, r.date); err != nil {
			return err
		}
	}
	return nil
}

// archive is the name of a platform's archive.
func (r *release) archive(p platform) string {
	end := "tar.gz"
	if p.os == "windows" {
		end = "zip"
	}
	return fmt.Sprintf("kubectl-weightedrollout_%s_%s_%s.%s", r.version, p.os, p.arch, end)
}

// image builds the controller for every platform into one image.
func (r *release) image(ctx context.Context, work string) error {
	tool, err := r.tool("image")
	if err != nil {
		return err
	}
	var binaries []string
	for _, p := range r.images {
		binary := filepath.Join(work, "image-"+p.arch, "manager")
		if err := r.compile(ctx, "./cmd/manager", binary, p); err != nil {
			return err
		}
		binaries = append(binaries, p.String()+"="+binary)
	}
	return r.run(ctx, []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix())}, tool,
		"--platform", strings.Join(binaries, ","), "--entrypoint", "/manager", "--tag", imageName+":v"+r.version,
		"--revision", r.commit, "--oci", filepath.Join(r.out, "image"))
}

// chart packages the chart, with the version as its own and the controller's.
func (r *release) chart(ctx context.Context, _ string) error {
	helm, err := r.tool("helm")
	if err != nil {
		return err
	}
	return r.run(ctx, nil, helm, "package", "charts/weightedrollout", "--version", r.version, "--app-version", "v"+r.version, "--destination", r.out)
}

// installFile renders what kubectl users apply, with the released image.
func (r *release) installFile(ctx context.Context, work string) error {
	kubectl, err := r.tool("kubectl")
	if err != nil {
		return err
	}
	rendered := filepath.Join(work, "install.yaml")
	if err := r.run(ctx, nil, kubectl, "kustomize", "config/default", "--output", rendered); err != nil {
		return err
	}
	text, err := os.ReadFile(rendered) //nolint:gosec // what was just written
	if err != nil {
		return err
	}
	released, err := withImage(string(text), r.version)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "install.yaml"), []byte(released), 0o644) //nolint:gosec // it is to be read by all
}

// withImage puts the released image into manifests.
func withImage(manifests, version string) (string, error) {
	const now = imageName + ":dev"
	if !strings.Contains(manifests, now) {
		return "", fmt.Errorf("the manifests do not name the image %s", now)
	}
	return strings.ReplaceAll(manifests, now, imageName+":v"+version), nil
}

// materials writes down which modules the programs consist of, as CycloneDX.
func (r *release) materials(ctx context.Context, _ string) error {
	tool, err := r.tool("cyclonedx-gomod")
	if err != nil {
		return err
	}
	for name, main := range map[string]string{"manager": "cmd/manager", "kubectl-weightedrollout": "cmd/kubectl-weightedrollout"} {
		out := filepath.Join(r.out, name+"_"+r.version+".sbom.json")
		if err := r.run(ctx, []string{"GOWORK=off"}, tool, "app", "-json", "-noserial", "-licenses", "-main", main, "-output", out, "."); err != nil {
			return err
		}
	}
	return nil
}
