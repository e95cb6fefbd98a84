package main

import (
	"bytes"
	"strings"
	"testing"
)

// run feeds the events to a summary and returns what it printed and its verdict.
func run(t *testing.T, stream string, lines ...string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	s := newSummary(&out, stream)
	follow(s, readLines(strings.NewReader(strings.Join(lines, "\n")+"\n")))
	passed := s.finish()
	return out.String(), passed
}

const (
	passA    = `{"Action":"pass","Package":"m/a","Test":"TestA"}`
	endA     = `{"Action":"pass","Package":"m/a","Elapsed":1.5}`
	outputB  = `{"Action":"output","Package":"m/b","Test":"TestB","Output":"    b_test.go:3: got 1, want 2\n"}`
	failB    = `{"Action":"fail","Package":"m/b","Test":"TestB"}`
	endB     = `{"Action":"fail","Package":"m/b","Elapsed":0.5}`
	whyC     = `{"Action":"output","Package":"m/c","Test":"TestC","Output":"    c_test.go:3: needs a: cluster\n"}`
	skipC    = `{"Action":"skip","Package":"m/c","Test":"TestC"}`
	endC     = `{"Action":"pass","Package":"m/c","Elapsed":0.1}`
	emptyD   = `{"Action":"skip","Package":"m/d","Elapsed":0}`
	compiler = `{"Action":"build-output","ImportPath":"m/e [m/e.test]","Output":"e.go:1: undefined: x\n"}`
	endE     = `{"Action":"fail","Package":"m/e","Elapsed":0,"FailedBuild":"m/e [m/e.test]"}`
	panicB   = `{"Action":"output","Package":"m/b","Output":"panic: test timed out\n"}`
)

func TestSummary(t *testing.T) {
	for name, test := range map[string]struct {
		lines  []string
		passed bool
		want   []string
	}{
		"all passed": {
			lines:  []string{passA, endA, emptyD},
			passed: true,
			want:   []string{"ok    m/a (1.5s): 1 passed", "without a test that was run: 1", "\n1 passed, 0 failed\n"},
		},
		"a failure shows its output": {
			lines: []string{passA, endA, outputB, failB, endB},
			want:  []string{"got 1, want 2", "FAIL  m/b (0.5s): 0 passed, 1 failed", "  m/b TestB\n", "\n1 passed, 1 failed\n"},
		},
		"a skip gives its reason": {
			lines:  []string{passA, endA, whyC, skipC, endC},
			passed: true,
			want:   []string{"  m/c: needs a: cluster (TestC)\n", "\n1 passed, 0 failed, 1 skipped\n"},
		},
		"what does not build fails": {
			lines: []string{passA, endA, compiler, endE},
			want:  []string{"e.go:1: undefined: x", "m/e (did not build)", "\n1 passed, 1 failed\n"},
		},
		"a package that ends in the middle of a test fails": {
			lines: []string{passA, endA, outputB, panicB, endB},
			want:  []string{"panic: test timed out", "ended in the middle of TestB", "\n1 passed, 1 failed\n"},
		},
		"a package that does not end fails": {
			lines: []string{passA},
			want:  []string{"m/a (did not end)", "\n1 passed, 1 failed\n"},
		},
		"no test is no success": {
			lines: []string{emptyD},
			want:  []string{"\n0 passed, 0 failed\n"},
		},
		"what is no event is shown": {
			lines:  []string{"go: downloading something", passA, endA},
			passed: true,
			want:   []string{"go: downloading something\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, passed := run(t, "", test.lines...)
			if passed != test.passed {
				t.Errorf("passed is %v, want %v", passed, test.passed)
			}
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in:\n%s", want, got)
				}
			}
		})
	}
}

func TestStreamedOutputIsShownOnceAndAtOnce(t *testing.T) {
	got, _ := run(t, "m/b", outputB, failB, endB)
	if n := strings.Count(got, "got 1, want 2"); n != 1 {
		t.Errorf("shown %d times, want once:\n%s", n, got)
	}
	if strings.Index(got, "got 1, want 2") > strings.Index(got, "FAIL") {
		t.Errorf("shown late:\n%s", got)
	}
}
