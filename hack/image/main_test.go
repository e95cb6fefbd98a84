package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/weightedrollout/weightedrollout/hack/image/containerimage"
)

const tag = "ghcr.io/weightedrollout/weightedrollout:1.2.3"

func TestMakesAnImage(t *testing.T) {
	program := filepath.Join(t.TempDir(), "image") // this program itself
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	out := filepath.Join(t.TempDir(), "image.tar")
	var said bytes.Buffer
	args := []string{"--binary", program, "--entrypoint", "/manager", "--tag", tag, "--out", out, "--revision", "abc"}
	if err := run(t.Context(), args, &said); err != nil {
		t.Fatal(err)
	}
	if want := out + ": " + tag + " for linux/amd64\n"; said.String() != want {
		t.Errorf("it said %q, want %q", said.String(), want)
	}
	parsed, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(out, &parsed)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Created.Unix() != 1700000000 {
		t.Errorf("the image is of %s", config.Created)
	}
	for label, want := range map[string]string{
		containerimage.LabelVersion: "1.2.3", containerimage.LabelRevision: "abc", containerimage.LabelLicenses: "Apache-2.0",
		containerimage.LabelSource: "https://github.com/weightedrollout/weightedrollout",
	} {
		if got := config.Config.Labels[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	args = []string{"--platform", "linux/arm64=" + program, "--entrypoint", "/manager", "--tag", tag, "--oci", filepath.Join(t.TempDir(), "oci"), "--revision", "abc"}
	if err := run(t.Context(), args, &said); err == nil || !strings.Contains(err.Error(), "is built for linux/amd64, not for linux/arm64") {
		t.Errorf("another platform than was said: %v", err)
	}
}

func TestWrongFlagsAreNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no tag":        {[]string{"--binary=x", "--out=y"}, "--tag: "},
		"nothing to do": {[]string{"--tag", tag, "--revision=r"}, "give either --binary and --out, or --platform and --oci"},
		"both forms":    {[]string{"--tag", tag, "--revision=r", "--binary=x", "--out=y", "--platform=linux/amd64=x", "--oci=z"}, "give either"},
		"an argument":   {[]string{"--tag", tag, "x"}, `"x" is not understood`},
		"no path":       {[]string{"--tag", tag, "--revision=r", "--entrypoint=/x", "--platform=linux/amd64", "--oci=z"}, "is no PLATFORM=PATH"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), tc.args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	err := run(t.Context(), []string{"--tag", tag, "--revision=r", "--binary=x", "--out=y"}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "set it to a number of seconds") {
		t.Errorf("SOURCE_DATE_EPOCH: %v", err)
	}
}
