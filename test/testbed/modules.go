package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	selfModule       = "github.com/weightedrollout/weightedrollout"
	gatewayAPIModule = "sigs.k8s.io/gateway-api"
)

// modulePaths says where the source of this module and of the Gateway API is.
// The CRDs are read from there, in the versions that go.mod names.
type modulePaths struct {
	self       string
	gatewayAPI string
}

func findModules(ctx context.Context) (modulePaths, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", selfModule, gatewayAPIModule)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return modulePaths{}, errors.New("finding the CRDs: the go command is not in PATH; the testbed reads them from the modules that go.mod names")
	}
	if err != nil {
		return modulePaths{}, fmt.Errorf("finding the CRDs by go list (run this inside the repository): %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		found[path] = dir
	}
	paths := modulePaths{self: found[selfModule], gatewayAPI: found[gatewayAPIModule]}
	if paths.self == "" || paths.gatewayAPI == "" {
		return modulePaths{}, fmt.Errorf("finding the CRDs: the source of %s is not on this machine; run go mod download", gatewayAPIModule)
	}
	return paths, nil
}

// crdDirs lists the directories whose CRDs every bed has. The Gateway API's
// standard channel is what clusters run.
func (m modulePaths) crdDirs() []string {
	return []string{
		filepath.Join(m.gatewayAPI, "config", "crd", "standard"),
		filepath.Join(m.self, "config", "crd", "bases"),
	}
}

// ModuleDirs returns the folders of this module's source and of the Gateway API's, in
// the version that go.mod names.
func ModuleDirs(ctx context.Context) (self, gatewayAPI string, err error) {
	paths, err := findModules(ctx)
	return paths.self, paths.gatewayAPI, err
}
