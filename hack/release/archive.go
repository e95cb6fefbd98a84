package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// checksumFile lists the checksums, in the form of sha256sum.
const checksumFile = "checksums.txt"

// member is a file of an archive.
type member struct {
	name, path string
	mode       os.FileMode
}

// writeArchive writes a .tar.gz or a .zip. All members have the same time, so that the
// same members make the same archive.
func writeArchive(path string, members []member, at time.Time) (err error) {
	f, err := os.Create(path) //nolint:gosec // the caller's own path
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if strings.HasSuffix(path, ".zip") {
		return writeZip(f, members, at)
	}
	return writeTar(f, members, at)
}

func writeTar(to io.Writer, members []member, at time.Time) error {
	zipped := gzip.NewWriter(to)
	archive := tar.NewWriter(zipped)
	for _, m := range members {
		text, err := os.ReadFile(m.path)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: m.name, Mode: int64(m.mode), Size: int64(len(text)), ModTime: at, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

func writeZip(to io.Writer, members []member, at time.Time) error {
	archive := zip.NewWriter(to)
	for _, m := range members {
		text, err := os.ReadFile(m.path)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: at}
		header.SetMode(m.mode)
		w, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return archive.Close()
}

// sum is the SHA-256 of a file, in hexadecimal.
func sum(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // a file that was just made
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checksums lists the checksums of everything. It comes last.
func (r *release) checksums(context.Context, string) error {
	files, err := listFiles(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, f := range files {
		s, err := sum(filepath.Join(r.out, f))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", s, f)
	}
	return os.WriteFile(filepath.Join(r.out, checksumFile), []byte(lines.String()), 0o644) //nolint:gosec // it is to be read by all
}
