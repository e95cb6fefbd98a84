package played

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// repeatVariable is the environment variable that says how often the tests that depend
// on chance are repeated, each time with another seed. Default: once.
const repeatVariable = "WEIGHTEDROLLOUT_REPEAT"

func repetitions(t *testing.T) int {
	t.Helper()
	text := os.Getenv(repeatVariable)
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q, and should be the number of repetitions, such as 20", repeatVariable, text)
	}
	return n
}

// TestSlowAPIServer: with an API server that takes its time over every write, and a
// manager that is started anew at some moment, the canary's share never falls on the
// way to 100 percent, nor rises on the way back.
func TestSlowAPIServer(t *testing.T) {
	t.Parallel()
	for i := range repetitions(t) {
		seed := uint64(i + 1)
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { testSlowAPIServer(t, seed) })
	}
}

func testSlowAPIServer(t *testing.T, seed uint64) {
	const perWrite = 300 * time.Millisecond
	w := newWorld(t)
	chance := rand.New(rand.NewPCG(seed, 0))
	// The moment is some time after a write has come in: before it is let through, or
	// later, and even while nothing is under way.
	write := int64(1 + chance.IntN(len(writesOfWholeRun)-1))
	after := time.Duration(chance.Int64N(int64(4 * perWrite)))
	end, how := (*testbed.Manager).Kill, "killed"
	if chance.IntN(2) == 0 {
		end, how = (*testbed.Manager).Stop, "stopped"
	}
	var writes, ended atomic.Int64
	w.api.onRequest(func(r *request) verdict {
		if !r.isWrite() {
			return verdict{}
		}
		if r.isOurWrite() && writes.Add(1) == write {
			time.AfterFunc(after, func() {
				w.endManager(end)
				ended.Add(1)
			})
		}
		time.Sleep(perWrite)
		return verdict{}
	})
	w.runWhole("web")
	// The moment may have come only after all was done.
	eventually(t, "the manager "+how, func() (bool, string) {
		return ended.Load() == 1, fmt.Sprintf("%d writes, and its moment is after number %d", writes.Load(), write)
	})
	if !w.hasManager() {
		w.startManager()
	}
	weights := w.routes.of("web")
	t.Logf("%s %s after write %d came in: %s", how, after.Round(time.Millisecond), write, strings.Join(weights, " "))
	w.neverBack("web")
	w.wantWeights("web", wholeRun...)
}

// neverBack checks that a route's canary share, once the rollout had begun at 0, rose to
// 100 percent without ever falling, and fell from there without ever rising.
func (w *world) neverBack(name string) {
	w.t.Helper()
	weights := w.routes.of(name)
	began, promoted, last := false, false, 0
	for i, text := range weights {
		var p pair
		if _, err := fmt.Sscanf(text, "%d/%d", &p.stable, &p.canary); err != nil {
			w.t.Fatalf("weights %q: %v", text, err)
		}
		share := p.canary * 100 / max(1, p.stable+p.canary)
		switch {
		case !began:
			began = share == 0
		case !promoted && share < last:
			w.t.Errorf("on the way up the share fell from %d to %d percent: %v", last, share, weights[:i+1])
		case promoted && share > last:
			w.t.Errorf("on the way back the share rose from %d to %d percent: %v", last, share, weights[:i+1])
		}
		promoted, last = promoted || share == 100, share
	}
	if !promoted {
		w.t.Errorf("the share never was 100 percent: %v", weights)
	}
}
