package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// document writes a document with these lines.
func document(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "faults.md")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCasesAreCounted(t *testing.T) {
	file := document(t, "# Faults", "| case | fault |", "|---|---|", "| C01 | one |", "| C02 | another, as in C07 |", "| C03 | a third |")
	var out strings.Builder
	s := newSummary(&out, "")
	var err error
	if s.cases, err = readCases(file); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`{"Action":"pass","Package":"m/a","Test":"TestC01WeightsAreNoPercentages"}`,
		`{"Action":"fail","Package":"m/a","Test":"TestC02Zero"}`,
		`{"Action":"pass","Package":"m/a","Test":"TestC02"}`,
		`{"Action":"pass","Package":"m/a","Test":"TestSomethingLikeC03"}`,
		`{"Action":"pass","Package":"m/a"}`,
	} {
		s.line([]byte(line))
	}
	if s.finish() {
		t.Error("passed, and two cases have no test that passed")
	}
	for _, want := range []string{"1 of the 3 cases in " + file + " have a test that passed\n", "without one: C02, C03\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}

func TestDocumentsOfCases(t *testing.T) {
	for name, file := range map[string]string{
		"no such file": filepath.Join(t.TempDir(), "none.md"),
		"no case":      document(t, "| case |", "|---|"),
		"one twice":    document(t, "| C01 | one |", "| C01 | one |"),
	} {
		if _, err := readCases(file); err == nil || !strings.HasPrefix(err.Error(), "-cases: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
