package played

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// managerMemory is the limit of memory in the manifests, in MiB.
const managerMemory = 512

// hostile is what a metrics server says about one rollout that is none's friend.
type hostile struct {
	change   change
	series   []byte // go into every answer to a batch that is about the rollout
	buckets  []byte // or only to one about response times
	instant  []byte // answers its own checks
	zippable bool   // what is sent is compressed, and was so beforehand
}

// hostiles are neighbours that want the manager dead, one of each kind.
func hostiles(t *testing.T) map[string]hostile {
	const begin, end = `{"status":"success","data":{"resultType":"vector","result":[`, `{}]}}`
	many := func(text string, size int) []byte { return bytes.Repeat([]byte(text), size/len(text)) }
	whole := func(text string, size int) []byte {
		return zip(t, append(append([]byte(begin), many(text, size)...), end...))
	}
	checks := func(n int) change {
		return func(wr *v1alpha1.WeightedRollout) {
			h := wr.Spec.Health
			h.Preset, h.ErrorRate, h.Latency = "", nil, nil
			for i := range n {
				h.Checks = append(h.Checks, v1alpha1.Check{Name: fmt.Sprintf("check-%d", i), Query: "own_{{route}}", Max: ptr.To[v1alpha1.Decimal]("1")})
			}
		}
	}
	var bounds bytes.Buffer
	for i := range 80_000 {
		fmt.Fprintf(&bounds, `{"metric":{"service":"BOUNDS","le":"%d.5"},"values":[]},`, i)
	}
	series := many(`{"metric":{"service":"nobody's","code":"200"},"values":[[1,"1"]]},`, 50<<20)
	nothing := func(*v1alpha1.WeightedRollout) {}
	return map[string]hostile{
		"large":  {change: nothing, series: series},
		"bomb":   {change: nothing, series: zip(t, many(`{},`, 100<<20)), zippable: true},
		"bounds": {change: nothing, buckets: bounds.Bytes()},
		"text":   {change: checks(1), instant: append([]byte(begin+`{"metric":{"a":"`), many("x", 50<<20)...)},
		"empty":  {change: checks(1), instant: whole(`{},`, 32<<20), zippable: true},
		"twenty": {change: checks(20), instant: whole(`{"metric":{},"value":[1,"1"]},`, 31<<20), zippable: true},
	}
}

func zip(t *testing.T, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(text)
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// hostilePrometheus answers for the hostile ones as they are, and for the rest as the
// played Prometheus does.
type hostilePrometheus struct {
	*playedPrometheus
	*httptest.Server
	t     *testing.T
	kinds map[string]hostile

	mu    sync.Mutex
	asked map[string]int
}

func newHostilePrometheus(t *testing.T, p *playedPrometheus, kinds map[string]hostile) *hostilePrometheus {
	h := &hostilePrometheus{playedPrometheus: p, t: t, kinds: kinds, asked: map[string]int{}}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serveHTTP))
	t.Cleanup(h.Close)
	return h
}

func (h *hostilePrometheus) times(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[name]
}

func (h *hostilePrometheus) serveHTTP(rw http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	query := r.Form.Get("query")
	var about []hostile
	zipped := false
	h.mu.Lock()
	for name, kind := range h.kinds {
		if strings.Contains(query, "-"+canaryOf(name)+"-") || strings.Contains(query, "own_"+name) {
			h.asked[name]++
			about, zipped = append(about, kind), zipped || kind.zippable
		}
	}
	h.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/query") {
		h.send(rw, zipped, about[0].instant)
		return
	}
	all := h.overRange(query, r.Form.Get("start"), r.Form.Get("end"), r.Form.Get("step"))
	begin, rest, _ := bytes.Cut(all, []byte(`"result":[`))
	parts := [][]byte{h.part(zipped, append(begin, `"result":[`...))}
	for _, kind := range about {
		for _, part := range [][]byte{kind.series, h.ifBuckets(query, kind.buckets)} {
			if zipped && !kind.zippable {
				continue // a server that compresses would take as long as to send it
			}
			parts = append(parts, part)
		}
	}
	h.send(rw, zipped, append(parts, h.part(zipped, rest))...)
}

func (h *hostilePrometheus) ifBuckets(query string, buckets []byte) []byte {
	if !strings.Contains(query, "_bucket") {
		return nil
	}
	for _, name := range named(query) {
		if strings.Contains(name, canaryOf("bounds")) {
			return bytes.ReplaceAll(buckets, []byte("BOUNDS"), []byte(name))
		}
	}
	return nil
}

// part compresses what is to be. Compressed parts can follow each other.
func (h *hostilePrometheus) part(zipped bool, text []byte) []byte {
	if zipped {
		return zip(h.t, text)
	}
	return text
}

func (h *hostilePrometheus) send(rw http.ResponseWriter, zipped bool, parts ...[]byte) {
	rw.Header().Set("Content-Type", "application/json")
	if zipped {
		rw.Header().Set("Content-Encoding", "gzip")
	}
	for _, part := range parts {
		_, _ = rw.Write(part)
	}
}

// TestHostileNeighbours: beside rollouts of other namespaces whose metrics are as large as
// they can be, a manager with the memory of the manifests lives, and takes the traffic off
// a bad canary as soon as without them.
func TestHostileNeighbours(t *testing.T) {
	const interval = 5 * time.Second
	w := newWorld(t)
	prom := newHostilePrometheus(t, w.prom, hostiles(t))
	everyFive := func(wr *v1alpha1.WeightedRollout) {
		wr.Spec.Health.Prometheus.Address = prom.URL
		wr.Spec.Health.Window, wr.Spec.Health.Interval = "5s", "5s"
		stages("1h", "20")(wr)
	}
	namespaces := w.namespace
	for name, kind := range prom.kinds {
		other := w.namespace + "-" + name
		if err := w.bed.CreateNamespace(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if err := w.bed.PlayGateway(t.Context(), other, "gw", playedController); err != nil {
			t.Fatal(err)
		}
		namespaces += "," + other
		w.create(newRoute(other, name, ptr.To[int32](100), ptr.To[int32](0)))
		w.create(newEndpoints(other, stableOf(name), true))
		w.create(newEndpoints(other, canaryOf(name), true))
		w.create(newRollout(other, name, prom.URL, everyFive, kind.change))
	}
	w.rollout("victim", everyFive)
	w.startLimitedManager(t, "--namespaces="+namespaces)
	defer w.killManager() // before its cgroup can go

	w.await("victim", "a healthy verdict", func(wr *v1alpha1.WeightedRollout) bool {
		return !w.manager.Running() || wr.Status.Verdict != nil && wr.Status.Verdict.State == v1alpha1.VerdictHealthy
	})
	for name := range prom.kinds {
		eventually(t, name+" is asked three times", func() (bool, string) {
			return prom.times(name) >= 3 || !w.manager.Running(), strconv.Itoa(prom.times(name))
		})
	}
	w.mostMemory() // it lives
	w.prom.set(w.namespace, canaryOf("victim"), traffic{perSecond: 50, failed: 0.9})
	bad := time.Now()
	eventually(t, "the victim's rollback", func() (bool, string) { p := w.weightsNow("victim"); return p.canary == 0, fmt.Sprint(p) })
	// A second for the bed, on a machine that is busy.
	took := time.Since(bad)
	t.Logf("the rollback took %s; the manager has had %d MiB of %d", took.Round(time.Millisecond), w.mostMemory(), managerMemory)
	if took > 2*interval+time.Second {
		t.Errorf("the rollback took %s, and should two intervals of %s", took, interval)
	}
	if most := w.mostMemory(); most > managerMemory*3/4 {
		t.Errorf("the manager has had %d MiB of memory", most)
	}
}

// startLimitedManager starts the manager with the memory of the manifests where that can be
// enforced, and says so where it cannot.
func (w *world) startLimitedManager(t *testing.T, args ...string) {
	t.Helper()
	options := testbed.ManagerOptions{Kubeconfig: w.kubeconfig, Args: args}
	group, err := newMemoryGroup(t, managerMemory<<20)
	if err != nil {
		t.Logf("NOT under a real limit of memory, which takes root and a writable cgroup: %v", err)
	} else {
		binary, err := filepath.Abs(filepath.Join(cmp.Or(os.Getenv("WEIGHTEDROLLOUT_BIN"), "../../../bin"), "manager"))
		if err != nil {
			t.Fatal(err)
		}
		options.Binary = filepath.Join(t.TempDir(), "manager")
		script := fmt.Sprintf("#!/bin/sh\necho $$ > '%s/cgroup.procs' && exec '%s' \"$@\"\n", group, binary)
		if err := os.WriteFile(options.Binary, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m, err := w.bed.StartManager(context.WithoutCancel(t.Context()), options)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.manager = m
}

// newMemoryGroup makes a cgroup, of either version, below that of the test.
func newMemoryGroup(t *testing.T, limit int64) (string, error) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	root, file := "/sys/fs/cgroup", "memory.max"
	own := regexp.MustCompile(`(?m)^0::(.*)$`).FindSubmatch(text)
	if m := regexp.MustCompile(`(?m)^\d+:(?:\w+,)*memory(?:,\w+)*:(.*)$`).FindSubmatch(text); m != nil {
		root, file, own = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", m
	}
	if own == nil {
		return "", errors.New("there is no cgroup")
	}
	group := filepath.Join(root, string(own[1]), "weightedrollout-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		return "", err
	}
	t.Cleanup(func() {
		// Of its processes the last one may take a moment to go.
		for deadline := time.Now().Add(patience); os.Remove(group) != nil && time.Now().Before(deadline); {
			time.Sleep(pollEvery)
		}
	})
	return group, os.WriteFile(filepath.Join(group, file), []byte(strconv.FormatInt(limit, 10)), 0o644)
}

// mostMemory is how many MiB of memory the manager has had at most.
func (w *world) mostMemory() int {
	w.t.Helper()
	if !w.manager.Running() {
		w.t.Fatalf("the manager was killed:\n%s", w.manager.LogTail())
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.pid()))
	if err != nil {
		w.t.Fatal(err)
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if found == nil {
		w.t.Fatal(io.ErrUnexpectedEOF)
	}
	kib, _ := strconv.Atoi(string(found[1]))
	return kib >> 10
}
