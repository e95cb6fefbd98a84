package containerimage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ParseTag reads the name of an image with its tag, such as
// ghcr.io/weightedrollout/weightedrollout:1.2.3.
func ParseTag(text string) (name.Tag, error) {
	tag, err := name.NewTag(text, name.StrictValidation)
	if err != nil {
		return tag, fmt.Errorf("%w: give a name with a registry and a tag, such as ghcr.io/weightedrollout/weightedrollout:1.2.3", err)
	}
	return tag, nil
}

// WriteArchive writes an image to a file that docker load and ctr images import read.
func WriteArchive(path string, tag name.Tag, image *Image) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	// Whoever loads it may be somebody else.
	err = errors.Join(tarball.Write(tag, image, f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing the image to %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// WriteLayout writes the images, one per platform, as one image to a directory: an OCI
// image layout. The directory must be empty, or not be there.
func WriteLayout(dir string, tag name.Tag, images []*Image) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or give another directory", dir)
	}
	index, err := indexOf(images)
	if err != nil {
		return err
	}
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag.TagStr()})
	if err := target.AppendIndex(index, name); err != nil {
		return fmt.Errorf("writing the image to %s: %w", dir, err)
	}
	return nil
}

// indexOf lists the images in the order of their platforms.
func indexOf(images []*Image) (v1.ImageIndex, error) {
	images = slices.Clone(images)
	slices.SortFunc(images, func(a, b *Image) int { return strings.Compare(a.Platform.String(), b.Platform.String()) })
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, image := range images {
		if i > 0 && image.Platform.Equals(images[i-1].Platform) {
			return nil, fmt.Errorf("two programs are built for %s: give one for each platform", image.Platform)
		}
		manifest := mutate.MediaType(image.Image, types.OCIManifestSchema1)
		manifest = mutate.ConfigMediaType(manifest, types.OCIConfigJSON)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: manifest, Descriptor: v1.Descriptor{Platform: &image.Platform},
		})
	}
	return index, nil
}
