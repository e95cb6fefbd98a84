package testcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weightedrollout/weightedrollout/hack/image/containerimage"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

const (
	// containerdSocket is in the node's own /run.
	containerdSocket = "/run/containerd/containerd.sock"
	pauseImage       = "localhost/pause:test"
)

// Image is an image that the cluster's pods can run.
type Image struct {
	// Tag is its name, with a registry and a tag. It is never pulled.
	Tag string
	// Program is a static program: a name in the folder of programs, or a path. In the
	// image it is in the root folder.
	Program string
}

// The paths that containerd would make outside of its folders are turned off with the
// plugins that want them.
const containerdConfig = `version = 2
root = %[1]q
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
  address = %[2]q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %[3]q
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %[4]q
    conf_dir = %[5]q
`

// Each pod hangs on a wire of its own and not on a bridge: packets between two pods
// then pass the node, whose translation of Service addresses they need both ways.
const networkConfig = `{
  "cniVersion": "0.4.0", "name": "pods", "plugins": [{
    "type": "ptp", "mtu": 1500,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": %q}
  }]
}
`

// startContainerd starts containerd in the node's namespaces, and gives it the image
// that every pod needs.
func (c *Cluster) startContainerd(ctx context.Context) error {
	plugins, err := findCNI()
	if err != nil {
		return err
	}
	files := map[string]string{
		"containerd.toml":   fmt.Sprintf(containerdConfig, c.path("containerd"), containerdSocket, pauseImage, plugins, c.path("cni")),
		"cni/pods.conflist": fmt.Sprintf(networkConfig, podRange, c.path("addresses")),
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(c.path(name)), 0o755); err != nil {
			return fmt.Errorf("configuring containerd: %w", err)
		}
		if err := os.WriteFile(c.path(name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("configuring containerd: %w", err)
		}
	}
	_, err = c.supervisor.Start(ctx, testbed.Command{
		Name: "containerd", Binary: "nsenter",
		Args:  c.enteringNode("containerd", "--config="+c.path("containerd.toml"), "--log-level=warn"),
		Ready: func(ctx context.Context) error { return c.ctr(ctx, "version") },
	})
	if err != nil {
		return err
	}
	return c.LoadImage(ctx, Image{Tag: pauseImage, Program: c.path("pause")})
}

func (c *Cluster) ctr(ctx context.Context, args ...string) error {
	return c.onNode(ctx, append([]string{"ctr", "--address=" + containerdSocket, "--namespace=k8s.io"}, args...)...)
}

// LoadImage makes an image of a static program and gives it to the node.
func (c *Cluster) LoadImage(ctx context.Context, image Image) error {
	program := image.Program
	if !filepath.IsAbs(program) {
		var err error
		if program, err = c.program(program); err != nil {
			return err
		}
	}
	tag, err := containerimage.ParseTag(image.Tag)
	if err != nil {
		return fmt.Errorf("loading an image: %w", err)
	}
	built, err := containerimage.Build(containerimage.Spec{
		Program: program, Entrypoint: "/" + filepath.Base(program), Uncompressed: true,
	})
	if err != nil {
		return fmt.Errorf("making image %s: %w", image.Tag, err)
	}
	file := c.path("image-" + strings.NewReplacer("/", "-", ":", "-").Replace(image.Tag) + ".tar")
	if err := containerimage.WriteArchive(file, tag, built); err != nil {
		return err
	}
	if err := errors.Join(c.ctr(ctx, "images", "import", file), os.Remove(file)); err != nil {
		return fmt.Errorf("loading image %s: %w", image.Tag, err)
	}
	return nil
}

func (c *Cluster) loadImages(ctx context.Context) error {
	for _, image := range c.options.Images {
		if err := c.LoadImage(ctx, image); err != nil {
			return err
		}
	}
	return nil
}

// KillContainer kills the first process of a container, as the kernel does when memory is
// short. It takes the ID that a pod's status has, such as containerd://….
func (c *Cluster) KillContainer(ctx context.Context, id string) error {
	id = strings.TrimPrefix(id, "containerd://")
	if err := c.ctr(ctx, "tasks", "kill", "--signal=SIGKILL", id); err != nil {
		return fmt.Errorf("killing container %s: %w", id, err)
	}
	return nil
}
