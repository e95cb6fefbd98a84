package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// krew writes the manifest by which krew installs the plugin.
func (r *release) krew(context.Context, string) error {
	type selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	}
	type plugin struct {
		Selector selector `json:"selector"`
		URI      string   `json:"uri"`
		SHA256   string   `json:"sha256"`
		Bin      string   `json:"bin"`
	}
	var platforms []plugin
	for _, p := range r.plugins {
		s, err := sum(filepath.Join(r.out, r.archive(p)))
		if err != nil {
			return err
		}
		bin := "kubectl-weightedrollout"
		if p.os == "windows" {
			bin += ".exe"
		}
		platforms = append(platforms, plugin{
			Selector: selector{map[string]string{"os": p.os, "arch": p.arch}},
			URI:      fmt.Sprintf("%s/v%s/%s", downloads, r.version, r.archive(p)),
			SHA256:   s, Bin: bin,
		})
	}
	manifest := map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   map[string]any{"name": "weightedrollout"},
		"spec": map[string]any{
			"version":          "v" + r.version,
			"homepage":         "https://github.com/weightedrollout/weightedrollout",
			"shortDescription": "Watch and steer canary rollouts",
			"description": strings.Join([]string{
				"Plans, simulates, watches and steers WeightedRollouts: canary rollouts that",
				"move the weights of a Gateway API route in small, checked steps.",
			}, "\n"),
			"platforms": platforms,
		},
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "weightedrollout.krew.yaml"), text, 0o644) //nolint:gosec // it is to be read by all
}
