package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// completionPatience is how long a shell waits for names.
const completionPatience = 2 * time.Second

// kinds are the ways to write the kind before a name.
var kinds = []string{"wr", "weightedrollout", "weightedrollouts", "weightedrollout.weightedrollout.dev", "weightedrollouts.weightedrollout.dev"}

// rolloutName returns the name in an argument, which may have the kind before it.
func rolloutName(arg string) (string, error) {
	name := arg
	if kind, rest, found := strings.Cut(arg, "/"); found {
		if !slices.Contains(kinds, strings.ToLower(kind)) {
			return "", fmt.Errorf("%q is no WeightedRollout: write its name alone, or wr/ before it", arg)
		}
		name = rest
	}
	if faults := validation.IsDNS1123Subdomain(name); len(faults) > 0 {
		return "", fmt.Errorf("%q is no name of a WeightedRollout: %s", name, faults[0])
	}
	return name, nil
}

// oneName takes the name of one rollout from the arguments.
func oneName(cmd *cobra.Command, args []string) (string, error) {
	if len(args) != 1 {
		return "", fmt.Errorf("give the name of one WeightedRollout: there are %d arguments\nSee '%s --help' for usage", len(args), cmd.CommandPath())
	}
	return rolloutName(args[0])
}

// completeNames offers the names of the rollouts in the namespace, if the cluster tells
// them soon enough.
func (c *clusterFlags) completeNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.metadata(cmd.Context(), v1alpha1.GroupVersion.String(), "weightedrollouts"), cobra.ShellCompDirectiveNoFileComp
}

// metadata lists the names of a kind's objects; none where that cannot be had.
func (c *clusterFlags) metadata(ctx context.Context, groupVersion, resource string) []string {
	cluster, err := c.connect()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	var list metav1.PartialObjectMetadataList
	request := cluster.aim(cluster.client.Get(), groupVersion, resource)
	if groupVersion == "v1" {
		request = cluster.client.Get().AbsPath("/api/v1").Resource(resource)
	}
	request.SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json").MaxRetries(0)
	if answer(ctx, request, &list) != nil {
		return nil
	}
	var names []string
	for _, o := range list.Items {
		names = append(names, o.Name)
	}
	return names
}

func (c *clusterFlags) namespaces(ctx context.Context) []string {
	return c.metadata(ctx, "v1", "namespaces")
}

// contexts lists the contexts of the kubeconfig.
func (c *clusterFlags) contexts(context.Context) []string {
	raw, err := c.loader().RawConfig()
	if err != nil {
		return nil
	}
	var names []string
	for name := range raw.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// completeBy lets the shell complete the value of a flag by what a function finds out.
func completeBy(cmd *cobra.Command, flag string, find func(context.Context) []string) {
	offer := func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return find(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
	// It fails only on a flag that does not exist or is completed already.
	if err := cmd.RegisterFlagCompletionFunc(flag, offer); err != nil {
		cmd.PrintErrln(err)
	}
}
