package main

import (
	"math"
	"os"
	"regexp"
	"runtime/debug"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestMemoryOfAnswers: they take less than half of what either way of installation gives.
func TestMemoryOfAnswers(t *testing.T) {
	const limits = `limits:\s+memory: (\S+)`
	for _, file := range []string{"../../config/manager/manager.yaml", "../../charts/weightedrollout/values.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(limits).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no limit of memory", file)
		}
		limit := resource.MustParse(string(found[1]))
		if got := memoryOfAnswers(limit.Value() / 10 * 9); got > limit.Value()/2 || got < 100<<20 {
			t.Errorf("%s: %d MiB of %s", file, got>>20, limit.String())
		}
	}
	for limit, want := range map[int64]int64{math.MaxInt64: 128 << 20, 1 << 20: 32 << 20, 512 << 20: 128 << 20, 1 << 40: 256 << 20} {
		if got := memoryOfAnswers(limit); got != want {
			t.Errorf("of %d MiB %d MiB, want %d", limit>>20, got>>20, want>>20)
		}
	}
}

// TestGOMEMLIMITWins over what the container has.
func TestGOMEMLIMITWins(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Setenv("GOMEMLIMIT", "1GiB") // which the runtime reads when it starts
	if limit, err := limitMemory(); err != nil || limit != before || debug.SetMemoryLimit(-1) != before {
		t.Errorf("%d, %v, want %d", limit, err, before)
	}
}
