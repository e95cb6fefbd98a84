// Package containerimage makes container images from static programs, without a
// container engine. The same input gives the same bytes: every time is fixed and
// every list sorted.
package containerimage

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is whom the program in an image runs as: user and group 65532, nonroot.
const User = "65532:65532"

// The labels of an image: https://github.com/opencontainers/image-spec, annotations.md.
const (
	LabelVersion  = "org.opencontainers.image.version"
	LabelRevision = "org.opencontainers.image.revision"
	LabelSource   = "org.opencontainers.image.source"
	LabelLicenses = "org.opencontainers.image.licenses"
)

// Spec says what an image is made of.
type Spec struct {
	// Program is the path of a static Linux program on this machine.
	Program string
	// Entrypoint is the absolute path of the program in the image.
	Entrypoint string
	// Certificates is the path of a file with the certificate authorities that the
	// program trusts. Default: none are in the image.
	Certificates string
	// Labels of the image; those without a value are left out.
	Labels map[string]string
	// Created is the time of the image and of every file in it. Default: 1970.
	Created time.Time
	// Uncompressed leaves the layers as they are: larger, and made in no time.
	Uncompressed bool
}

// Image is an image and the platform that its program was built for.
type Image struct {
	v1.Image
	Platform v1.Platform
}

// Build makes an image. It fails on a program that is not static, since there is no
// library in the image that it could load.
func Build(spec Spec) (*Image, error) {
	if !path.IsAbs(spec.Entrypoint) || path.Clean(spec.Entrypoint) != spec.Entrypoint || spec.Entrypoint == "/" {
		return nil, fmt.Errorf("the entry point %q is no absolute path of a file: give one such as /manager", spec.Entrypoint)
	}
	if spec.Created.IsZero() {
		spec.Created = time.Unix(0, 0)
	}
	spec.Created = spec.Created.UTC().Truncate(time.Second)
	platform, err := platformOf(spec.Program)
	if err != nil {
		return nil, err
	}
	layers, err := buildLayers(spec)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("putting the layers together: %w", err)
	}
	if image, err = configure(spec, platform, image); err != nil {
		return nil, err
	}
	return &Image{Image: image, Platform: platform}, nil
}

// buildLayers makes one layer of what every program needs, which is the same for all
// versions, and one of the program.
func buildLayers(spec Spec) ([]v1.Layer, error) {
	base, err := baseFiles(spec.Certificates)
	if err != nil {
		return nil, err
	}
	program, err := programFiles(spec.Program, spec.Entrypoint)
	if err != nil {
		return nil, err
	}
	var layers []v1.Layer
	for _, files := range [][]file{base, program} {
		text, err := archive(files, spec.Created)
		if err != nil {
			return nil, err
		}
		layer, err := asLayer(text, spec.Uncompressed)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

func asLayer(text []byte, uncompressed bool) (v1.Layer, error) {
	if uncompressed {
		return static.NewLayer(text, types.DockerUncompressedLayer), nil
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compressing a layer: %w", err)
	}
	return layer, nil
}

// configure completes the configuration that the layers were recorded in.
func configure(spec Spec, platform v1.Platform, image v1.Image) (v1.Image, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: spec.Created}
	config.History = []v1.History{
		{Created: config.Created, CreatedBy: "image: users and certificates"},
		{Created: config.Created, CreatedBy: "image: " + spec.Entrypoint},
	}
	labels := maps.Clone(spec.Labels)
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	config.Config = v1.Config{
		User: User, WorkingDir: "/", Entrypoint: []string{spec.Entrypoint}, Labels: labels,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin:/"},
	}
	if spec.Certificates != "" {
		config.Config.Env = append(config.Config.Env, "SSL_CERT_FILE=/"+certificatesPath)
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("writing the image's configuration: %w", err)
	}
	return image, nil
}
