// Command image makes a container image from static programs, without a container
// engine, and the same bytes each time:
//
//	image --binary bin/manager --entrypoint /manager --tag ghcr.io/weightedrollout/weightedrollout:1.2.3 --out image.tar
//	image --platform linux/amd64=amd64/manager,linux/arm64=arm64/manager --entrypoint /manager --tag … --oci dist/image
//
// The first form writes a file for docker load and ctr images import; the second a
// directory, an OCI image layout, with the image of every platform. The time of the
// image is SOURCE_DATE_EPOCH, in seconds since 1970, if that is set.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/weightedrollout/weightedrollout/hack/image/containerimage"
)

// certificates is where Linux distributions keep the authorities that they trust.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

type options struct {
	binary     string
	platforms  string
	entrypoint string
	tag        string
	out        string
	oci        string
	revision   string
	source     string
	licenses   string
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var o options
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&o.binary, "binary", "", "Static Linux program to make an image of, for --out.")
	flags.StringVar(&o.platforms, "platform", "", "Static Linux programs by platform, comma-separated, such as linux/amd64=a/manager,linux/arm64=b/manager, for --oci.")
	flags.StringVar(&o.entrypoint, "entrypoint", "", "Absolute path of the program in the image, such as /manager.")
	flags.StringVar(&o.tag, "tag", "", "Name of the image, with registry and tag.")
	flags.StringVar(&o.out, "out", "", "File to write the image to, for docker load and ctr images import.")
	flags.StringVar(&o.oci, "oci", "", "Directory to write the images to, as an OCI image layout.")
	flags.StringVar(&o.revision, "revision", "", "Revision of the source, for a label. Default: what git says.")
	flags.StringVar(&o.source, "source", "https://github.com/weightedrollout/weightedrollout", "URL of the source, for a label.")
	flags.StringVar(&o.licenses, "licenses", "Apache-2.0", "SPDX expression of the licences, for a label.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is not understood: every argument has a flag", flags.Arg(0))
	}
	tag, err := containerimage.ParseTag(o.tag)
	if err != nil {
		return fmt.Errorf("--tag: %w", err)
	}
	if o.revision == "" {
		if o.revision, err = gitRevision(ctx); err != nil {
			return err
		}
	}
	spec, err := o.spec(tag)
	if err != nil {
		return err
	}
	switch {
	case o.binary != "" && o.out != "" && o.platforms == "" && o.oci == "":
		return writeArchive(spec, tag, o, stdout)
	case o.platforms != "" && o.oci != "" && o.binary == "" && o.out == "":
		return writeLayout(spec, tag, o, stdout)
	}
	return errors.New("give either --binary and --out, or --platform and --oci")
}

// spec is what the images of all platforms have in common.
func (o options) spec(tag name.Tag) (containerimage.Spec, error) {
	spec := containerimage.Spec{Entrypoint: o.entrypoint, Labels: map[string]string{
		containerimage.LabelVersion:  tag.TagStr(),
		containerimage.LabelRevision: o.revision,
		containerimage.LabelSource:   o.source,
		containerimage.LabelLicenses: o.licenses,
	}}
	if _, err := os.Stat(certificates); err == nil {
		spec.Certificates = certificates
	}
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds < 0 {
			return spec, fmt.Errorf("SOURCE_DATE_EPOCH is %q: set it to a number of seconds since 1970, or unset it", text)
		}
		spec.Created = time.Unix(seconds, 0)
	}
	return spec, nil
}

func writeArchive(spec containerimage.Spec, tag name.Tag, o options, stdout io.Writer) error {
	spec.Program = o.binary
	image, err := containerimage.Build(spec)
	if err != nil {
		return err
	}
	if err := containerimage.WriteArchive(o.out, tag, image); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %s for %s\n", o.out, tag, image.Platform)
	return err
}

func writeLayout(spec containerimage.Spec, tag name.Tag, o options, stdout io.Writer) error {
	var images []*containerimage.Image
	var built []string
	for entry := range strings.SplitSeq(o.platforms, ",") {
		platform, program, ok := strings.Cut(entry, "=")
		if !ok || program == "" {
			return fmt.Errorf("--platform: %q is no PLATFORM=PATH, such as linux/amd64=bin/manager", entry)
		}
		spec.Program = program
		image, err := containerimage.Build(spec)
		if err != nil {
			return err
		}
		if got := image.Platform.OS + "/" + image.Platform.Architecture; got != platform {
			return fmt.Errorf("--platform: %s is built for %s, not for %s: set GOOS and GOARCH when building it", program, got, platform)
		}
		images, built = append(images, image), append(built, platform)
	}
	if err := containerimage.WriteLayout(o.oci, tag, images); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s: %s for %s\n", o.oci, tag, strings.Join(built, ", "))
	return err
}

// gitRevision asks git which commit is checked out.
func gitRevision(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("asking git for the revision: %w: give it by --revision", err)
	}
	return strings.TrimSpace(string(out)), nil
}
