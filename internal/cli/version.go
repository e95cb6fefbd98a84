package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// unset is the version of a program that the linker was told nothing about.
const unset = "dev"

func newVersionCommand(version string, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  kubectl weightedrollout version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintf(streams.Out, "kubectl-weightedrollout %s (%s, %s/%s)\n", versionOf(version, info), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// versionOf is what the linker was told, or else what Go knows of the module: its
// version after go install, its commit after go build.
func versionOf(linked string, info *debug.BuildInfo) string {
	if linked != unset || info == nil {
		return linked
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && s.Value != "" {
			return unset + "-" + s.Value
		}
	}
	return linked
}
