package containerimage

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const tagText = "ghcr.io/weightedrollout/weightedrollout:1.2.3"

// program writes the least that a program for Linux begins with: a header and a segment.
func program(t *testing.T, machine elf.Machine, segment elf.ProgType) string {
	t.Helper()
	const headerSize, segmentSize = 64, 56
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Phoff: headerSize, Ehsize: headerSize, Phentsize: segmentSize, Phnum: 1,
	}
	var text bytes.Buffer
	for _, part := range []any{header, elf.Prog64{Type: uint32(segment)}} {
		if err := binary.Write(&text, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func certificates(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, []byte("some authorities\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func build(t *testing.T, spec Spec) *Image {
	t.Helper()
	image, err := Build(spec)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	return image
}

func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	path, ca := program(t, elf.EM_X86_64, elf.PT_LOAD), certificates(t)
	tag, err := ParseTag(tagText)
	if err != nil {
		t.Fatal(err)
	}
	for _, uncompressed := range []bool{false, true} {
		var archives [][]byte
		for _, touched := range []time.Time{time.Unix(1, 0), time.Unix(2e9, 0)} {
			if err := os.Chtimes(path, touched, touched); err != nil {
				t.Fatal(err)
			}
			image := build(t, Spec{Program: path, Entrypoint: "/manager", Certificates: ca, Uncompressed: uncompressed})
			file := filepath.Join(t.TempDir(), "image.tar")
			if err := WriteArchive(file, tag, image); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			archives = append(archives, text)
		}
		if !bytes.Equal(archives[0], archives[1]) {
			t.Errorf("uncompressed %t: two builds differ", uncompressed)
		}
	}
}

func TestArchive(t *testing.T) {
	path := program(t, elf.EM_X86_64, elf.PT_LOAD)
	created := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tag, err := ParseTag(tagText)
	if err != nil {
		t.Fatal(err)
	}
	built := build(t, Spec{
		Program: path, Entrypoint: "/usr/bin/manager", Certificates: certificates(t), Created: created,
		Labels: map[string]string{LabelVersion: "1.2.3", LabelRevision: "abc", LabelSource: "", LabelLicenses: "Apache-2.0"},
	})
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := WriteArchive(file, tag, built); err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(file, &tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", WorkingDir: "/", Entrypoint: []string{"/usr/bin/manager"},
		Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin:/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{LabelVersion: "1.2.3", LabelRevision: "abc", LabelLicenses: "Apache-2.0"},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("configuration (-want +got):\n%s", diff)
	}
	if config.OS != "linux" || config.Architecture != "amd64" || !config.Created.Equal(created) {
		t.Errorf("%s/%s of %s", config.OS, config.Architecture, config.Created)
	}
	wantFiles := []string{
		"etc/ 0755", "etc/group 0644", "etc/passwd 0644", "etc/ssl/ 0755", "etc/ssl/certs/ 0755",
		"etc/ssl/certs/ca-certificates.crt 0644", "tmp/ 1777",
		"usr/ 0755", "usr/bin/ 0755", "usr/bin/manager 0755",
	}
	if diff := cmp.Diff(wantFiles, files(t, image, created)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// files lists what is in the layers, and checks that all is root's and of one time.
func files(t *testing.T, image v1.Image, created time.Time) []string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, layer := range layers {
		text, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		in := tar.NewReader(text)
		for {
			header, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || !header.ModTime.Equal(created) {
				t.Errorf("%s belongs to %d:%d %q and is of %s", header.Name, header.Uid, header.Gid, header.Uname, header.ModTime)
			}
			found = append(found, header.Name+" "+permissions(header.Mode))
		}
	}
	return found
}

func permissions(mode int64) string {
	digits := []byte{'0', '0', '0', '0'}
	for i := range digits {
		digits[i] += byte(mode >> (3 * (3 - i)) & 7)
	}
	return string(digits)
}

func TestLayoutOfTwoPlatforms(t *testing.T) {
	tag, err := ParseTag(tagText)
	if err != nil {
		t.Fatal(err)
	}
	arm := build(t, Spec{Program: program(t, elf.EM_AARCH64, elf.PT_LOAD), Entrypoint: "/manager"})
	amd := build(t, Spec{Program: program(t, elf.EM_X86_64, elf.PT_LOAD), Entrypoint: "/manager"})
	dir := filepath.Join(t.TempDir(), "image")
	if err := WriteLayout(dir, tag, []*Image{arm, amd}); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	outer, err := index.IndexManifest()
	if err != nil || len(outer.Manifests) != 1 || outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("%v: %+v", err, outer)
	}
	inner, err := index.ImageIndex(outer.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64/v8"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	if err := WriteLayout(dir, tag, []*Image{amd}); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("a second time: %v", err)
	}
	if err := WriteLayout(filepath.Join(t.TempDir(), "twice"), tag, []*Image{amd, amd}); err == nil || !strings.Contains(err.Error(), "two programs are built for linux/amd64") {
		t.Errorf("one platform twice: %v", err)
	}
}

func TestWrongInputIsNamed(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := program(t, elf.EM_X86_64, elf.PT_LOAD)
	dynamic := program(t, elf.EM_X86_64, elf.PT_INTERP)
	for name, tc := range map[string]struct {
		spec Spec
		want string
	}{
		"no program":          {Spec{Program: filepath.Join(t.TempDir(), "none"), Entrypoint: "/x"}, "no such file"},
		"a script":            {Spec{Program: text, Entrypoint: "/x"}, "built with GOOS=linux"},
		"not static":          {Spec{Program: dynamic, Entrypoint: "/x"}, "build it with CGO_ENABLED=0"},
		"another machine":     {Spec{Program: program(t, elf.EM_RISCV, elf.PT_LOAD), Entrypoint: "/x"}, "images are made for amd64 and arm64"},
		"relative entrypoint": {Spec{Program: good, Entrypoint: "manager"}, "no absolute path"},
		"root as entrypoint":  {Spec{Program: good, Entrypoint: "/"}, "no absolute path"},
		"way out":             {Spec{Program: good, Entrypoint: "/../x"}, "no absolute path"},
		"no certificates":     {Spec{Program: good, Entrypoint: "/x", Certificates: "/does/not/exist"}, "reading the certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Build(tc.spec); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
	for _, tag := range []string{"", "manager", "ghcr.io/x/y", "GHCR.io/X/y:1", "ghcr.io/x/y:ä"} {
		if _, err := ParseTag(tag); err == nil || !strings.Contains(err.Error(), "such as") {
			t.Errorf("tag %q: %v", tag, err)
		}
	}
}
