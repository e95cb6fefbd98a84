package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const crdPath = "../../config/crd/bases/weightedrollout.dev_weightedrollouts.yaml"

func TestReference(t *testing.T) {
	crd, err := os.ReadFile(crdPath)
	if err != nil {
		t.Fatal(err)
	}
	page, err := reference(crd)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"## spec.plan.stages[]",
		"| `weight` |",
		"[object](#speccanary)",
		"list of [object](#specroutes)",
		"`Rollback`, `Pause`, `Break`",
		"| `\"Enforce\"` |",
		"## status.share",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("%q is not on the page", line)
		}
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| ") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 6 {
			t.Errorf("not a row of five cells: %s", line)
		}
	}
}

func TestReferenceFails(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"nothing.yaml": "", "text.yaml": "- a", "other.yaml": "kind: Other\nspec: {unknown: 1}"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := run([]string{path, filepath.Join(dir, "out.md")}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := run(nil); err == nil {
		t.Error("no arguments are no error")
	}
	if err := run([]string{crdPath, filepath.Join(dir, "missing", "out.md")}); err == nil {
		t.Error("a folder that is missing is no error")
	}
}
