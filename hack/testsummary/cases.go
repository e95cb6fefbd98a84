package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// cases are the numbered faults of a document, and which of them a test has covered.
type cases struct {
	file    string
	numbers []string // in the document's order: C01, C02 …
	covered map[string]bool
}

// documented finds the rows of a document that begin with a case's number, and named a
// test of one: TestC05LeavesTestersAlone is of C05.
var (
	documented = regexp.MustCompile(`^\| (C[0-9]{2}) \|`)
	named      = regexp.MustCompile(`^Test(C[0-9]{2})[A-Za-z]`)
)

// readCases reads the numbers of the cases from a document. It fails if there are none,
// or one comes twice.
func readCases(file string) (*cases, error) {
	f, err := os.Open(file) //nolint:gosec // the caller of the command names the file
	if err != nil {
		return nil, fmt.Errorf("-cases: %w", err)
	}
	defer func() { _ = f.Close() }()
	c := &cases{file: file, covered: map[string]bool{}}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		found := documented.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		if slices.Contains(c.numbers, found[1]) {
			return nil, fmt.Errorf("-cases: %s has %s twice", file, found[1])
		}
		c.numbers = append(c.numbers, found[1])
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("-cases: read %s: %w", file, err)
	}
	if len(c.numbers) == 0 {
		return nil, errors.New("-cases: " + file + " has no row that begins with the number of a case, such as C05")
	}
	return c, nil
}

// passed takes note of a test that has passed.
func (c *cases) passed(test string) {
	if c == nil {
		return
	}
	if found := named.FindStringSubmatch(test); found != nil {
		c.covered[found[1]] = true
	}
}

// report prints how many cases are covered, and says whether all are.
func (c *cases) report(out io.Writer) bool {
	if c == nil {
		return true
	}
	var missing []string
	for _, number := range c.numbers {
		if !c.covered[number] {
			missing = append(missing, number)
		}
	}
	fmt.Fprintf(out, "%d of the %d cases in %s have a test that passed\n", len(c.numbers)-len(missing), len(c.numbers), c.file)
	if len(missing) > 0 {
		fmt.Fprintf(out, "without one: %s\n", strings.Join(missing, ", "))
	}
	return len(missing) == 0
}
