package telemetry

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// realPrometheus is a running Prometheus with its data.
type realPrometheus struct {
	t       *testing.T
	url     string
	args    []string
	process *exec.Cmd
}

// scrape returns a scrape configuration of one target. Further labels are those that
// discovery would give it.
func scrape(job, target, interval string, labels ...string) string {
	address, path, found := strings.Cut(strings.TrimPrefix(target, "http://"), "/")
	if !found {
		path = "metrics"
	}
	given := fmt.Sprintf("__metrics_path__: %q", "/"+path)
	for i := 0; i+1 < len(labels); i += 2 {
		given += fmt.Sprintf(", %s: %q", labels[i], labels[i+1])
	}
	return fmt.Sprintf("- {job_name: %s, scrape_interval: %s, scrape_timeout: %s, static_configs: [{targets: [%q], labels: {%s}}]}\n", job, interval, interval, address, given)
}

// startPrometheus runs a real Prometheus. It also takes samples that are written to it.
func startPrometheus(t *testing.T, scrapes ...string) *realPrometheus {
	t.Helper()
	if os.Getenv("WEIGHTEDROLLOUT_BIN") == "" {
		t.Skip("WEIGHTEDROLLOUT_BIN names no directory with a prometheus")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte("scrape_configs:\n"+strings.Join(scrapes, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	p := &realPrometheus{t: t, url: "http://" + address, args: []string{
		"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--storage.tsdb.retention.time=100y",
		"--web.listen-address=" + address, "--web.enable-remote-write-receiver", "--log.level=error",
	}}
	t.Cleanup(p.stop)
	p.start()
	return p
}

func (p *realPrometheus) start() {
	p.t.Helper()
	p.process = exec.CommandContext(p.t.Context(), filepath.Join(os.Getenv("WEIGHTEDROLLOUT_BIN"), "prometheus"), p.args...)
	p.process.Stderr = os.Stderr
	if err := p.process.Start(); err != nil {
		p.t.Fatal(err)
	}
	eventually(p.t, "a ready Prometheus", func() bool {
		request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/-/ready", nil)
		if err != nil {
			return false
		}
		r, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_ = r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
}

// stop ends the process as an administrator would; the data stay.
func (p *realPrometheus) stop() {
	if p.process == nil {
		return
	}
	_ = p.process.Process.Signal(os.Interrupt)
	_ = p.process.Wait()
	p.process = nil
}

// stale is the value by which Prometheus marks the end of a series.
var stale = math.Float64frombits(0x7ff0000000000002)

// timeline is a series with its samples: seconds since the start of the test, and
// values. A native one has histograms with so many observations of 0 instead.
type timeline struct {
	labels  map[string]string
	samples [][2]float64
	native  bool
}

// write puts samples into Prometheus by its remote-write protocol, version 1, as
// Prometheus's documentation specifies it.
func (p *realPrometheus) write(lines ...timeline) {
	p.t.Helper()
	var body []byte
	for _, l := range lines {
		body = appendField(body, 1, l.encode())
	}
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url+"/api/v1/write", bytes.NewReader(uncompressedSnappy(body)))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode/100 != 2 {
		p.t.Fatalf("writing samples: %s", response.Status)
	}
}

// encode writes the series in the format of protocol buffers, its labels sorted.
func (l timeline) encode() []byte {
	var out []byte
	for _, name := range slices.Sorted(maps.Keys(l.labels)) {
		label := appendField(appendField(nil, 1, []byte(name)), 2, []byte(l.labels[name]))
		out = appendField(out, 1, label)
	}
	for _, s := range l.samples {
		at := start.Add(time.Duration(s[0] * float64(time.Second))).UnixMilli()
		if l.native {
			count := binary.AppendUvarint([]byte{1 << 3}, uint64(s[1]))
			count = binary.AppendUvarint(append(count, 6<<3), uint64(s[1])) // those of 0
			out = appendField(out, 4, binary.AppendUvarint(append(count, 15<<3), uint64(at)))
			continue
		}
		sample := binary.LittleEndian.AppendUint64([]byte{1<<3 | 1}, math.Float64bits(s[1]))
		sample = binary.AppendUvarint(append(sample, 2<<3), uint64(at))
		out = appendField(out, 2, sample)
	}
	return out
}

func appendField(out []byte, number byte, content []byte) []byte {
	out = binary.AppendUvarint(append(out, number<<3|2), uint64(len(content)))
	return append(out, content...)
}

// uncompressedSnappy writes the block format of snappy with literals only.
func uncompressedSnappy(body []byte) []byte {
	out := binary.AppendUvarint(nil, uint64(len(body)))
	for chunk := range slices.Chunk(body, 1<<16) {
		out = binary.LittleEndian.AppendUint16(append(out, 61<<2), uint16(len(chunk)-1))
		out = append(out, chunk...)
	}
	return out
}
