package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// unread says in words why there is no cluster in the kubeconfig, and what to do.
func (c *clusterFlags) unread(err error) error {
	const cure = "name the right file with --kubeconfig, or in the environment variable " + clientcmd.RecommendedConfigPathEnvVar
	files, from := c.files()
	there := slices.ContainsFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return !errors.Is(err, os.ErrNotExist)
	})
	switch {
	case len(files) > 0 && !there:
		return fmt.Errorf("there is no kubeconfig %s (%s): %s", strings.Join(files, ", nor "), from, cure)
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("the kubeconfig %s (%s) names no cluster: %s", strings.Join(files, ", "), from, cure)
	}
	return fmt.Errorf("read the kubeconfig: %w", err)
}

// files are those in which a kubeconfig is looked for, and who has named them.
func (c *clusterFlags) files() (files []string, from string) {
	if c.kubeconfig != "" {
		return []string{c.kubeconfig}, "from --kubeconfig"
	}
	from = "the default, since " + clientcmd.RecommendedConfigPathEnvVar + " is not set"
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "" {
		from = "from the environment variable " + clientcmd.RecommendedConfigPathEnvVar
	}
	for _, file := range clientcmd.NewDefaultClientConfigLoadingRules().Precedence {
		if file != "" {
			files = append(files, file)
		}
	}
	return files, from
}
