package containerimage

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// certificatesPath is where Go programs, and most others, look for them.
const certificatesPath = "etc/ssl/certs/ca-certificates.crt"

const (
	users  = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	groups = "root:x:0:\nnonroot:x:65532:\n"
)

// file is a file of an image, or a directory if its mode says so.
type file struct {
	path string // without the leading slash
	mode int64
	text []byte
	dir  bool
}

// baseFiles are the users, a place for temporary files, and the certificates.
func baseFiles(certificates string) ([]file, error) {
	files := []file{
		{path: "etc/passwd", mode: 0o644, text: []byte(users)},
		{path: "etc/group", mode: 0o644, text: []byte(groups)},
		{path: "tmp", mode: 0o1777, dir: true},
	}
	if certificates == "" {
		return files, nil
	}
	text, err := os.ReadFile(certificates) //nolint:gosec // whoever makes an image says what is in it
	if err != nil {
		return nil, fmt.Errorf("reading the certificates for the image: %w", err)
	}
	return append(files, file{path: certificatesPath, mode: 0o644, text: text}), nil
}

func programFiles(program, entrypoint string) ([]file, error) {
	text, err := os.ReadFile(program) //nolint:gosec // whoever makes an image says what is in it
	if err != nil {
		return nil, fmt.Errorf("reading the program for the image: %w", err)
	}
	return []file{{path: strings.TrimPrefix(entrypoint, "/"), mode: 0o755, text: text}}, nil
}

// archive writes the files, with the directories that they are in, as a tar.
func archive(files []file, modified time.Time) ([]byte, error) {
	files = withParents(files)
	var buffer bytes.Buffer
	out := tar.NewWriter(&buffer)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(f.text)),
			ModTime: modified, Format: tar.FormatUSTAR,
		}
		if f.dir {
			header.Typeflag, header.Name = tar.TypeDir, f.path+"/"
		}
		if err := out.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("writing %s into a layer: %w", f.path, err)
		}
		if _, err := out.Write(f.text); err != nil {
			return nil, fmt.Errorf("writing %s into a layer: %w", f.path, err)
		}
	}
	if err := out.Close(); err != nil {
		return nil, fmt.Errorf("ending a layer: %w", err)
	}
	return buffer.Bytes(), nil
}

// withParents adds the directories of the files, each before what is in it.
func withParents(files []file) []file {
	all := map[string]file{}
	for _, f := range files {
		for dir := path.Dir(f.path); dir != "."; dir = path.Dir(dir) {
			if _, known := all[dir]; !known {
				all[dir] = file{path: dir, mode: 0o755, dir: true}
			}
		}
		all[f.path] = f
	}
	sorted := make([]file, 0, len(all))
	for _, f := range all {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return sorted
}

// platformOf reads which platform a program was built for.
func platformOf(program string) (platform v1.Platform, err error) {
	f, err := elf.Open(program)
	if err != nil {
		return platform, fmt.Errorf("reading %s: %w: an image takes a Linux program, built with GOOS=linux", program, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, segment := range f.Progs {
		if segment.Type == elf.PT_INTERP {
			return platform, fmt.Errorf("%s is not static, and there is no library in the image: build it with CGO_ENABLED=0", program)
		}
	}
	platform.OS = "linux"
	switch f.Machine {
	case elf.EM_X86_64:
		platform.Architecture = "amd64"
	case elf.EM_AARCH64:
		platform.Architecture, platform.Variant = "arm64", "v8"
	default:
		return platform, fmt.Errorf("%s is built for %s: images are made for amd64 and arm64", program, f.Machine)
	}
	return platform, nil
}
