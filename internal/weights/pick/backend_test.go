package pick_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights"
	"github.com/weightedrollout/weightedrollout/internal/weights/pick"
)

// backends names the weights A, B, C and so on, and b26, b27 after Z.
func backends(given ...int32) []pick.Backend {
	list := make([]pick.Backend, len(given))
	for i, w := range given {
		name := fmt.Sprintf("b%d", i)
		if i < 26 {
			name = string(rune('A' + i))
		}
		list[i] = pick.Backend{Name: name, Weight: w}
	}
	return list
}

// equal makes n backends of one weight.
func equal(n int, weight int32) []pick.Backend {
	given := make([]int32, n)
	for i := range given {
		given[i] = weight
	}
	return backends(given...)
}

// fataler is what tests, benchmarks and properties share.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

// must makes the picker of that name, seeded.
func must(t fataler, name string, list []pick.Backend) pick.Picker {
	t.Helper()
	p, err := pick.New(name, list, pick.Options{Source: rand.NewPCG(1, 2), Salt: "checkout", MaxFails: 3})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// letters writes the next n picks as letters, and "-" for none.
func letters(p pick.Picker, n int) string {
	var b strings.Builder
	for range n {
		if i := p.Pick(0); i >= 0 {
			b.WriteByte(byte('A' + i))
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// weightsOf draws 1 to n weights of up to most, at least one of them above 0.
func weightsOf(t *rapid.T, label string, n int, most int32) []int32 {
	given := rapid.SliceOfN(rapid.Int32Range(0, most), 1, n).Draw(t, label)
	i := rapid.IntRange(0, len(given)-1).Draw(t, label+": never 0")
	given[i] = max(given[i], 1)
	return given
}

func TestNames(t *testing.T) {
	want := []string{"round-robin", "naive", "smooth", "random", "consistent-hash", "buckets"}
	if diff := cmp.Diff(want, pick.Names()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	_, err := pick.New("rr", backends(1), pick.Options{})
	want = append(want, `"rr"`)
	for _, name := range want {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("an unknown name: error %v does not mention %s", err, name)
		}
	}
}

func TestNewErrors(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given []pick.Backend
		want  string
	}{
		{"none", nil, "no weight is above 0"},
		{"only zeros", backends(0, 0), "no weight is above 0"},
		{"negative", backends(1, -2), `backend "B" has the negative weight -2: use 0`},
		{"unnamed", []pick.Backend{{Name: "a", Weight: 1}, {Weight: 1}}, "backend 1 has no name"},
		{"named twice", []pick.Backend{{Name: "a", Weight: 1}, {Name: "b"}, {Name: "a"}}, `backends 0 and 2 are both named "a"`},
		{"too many", equal(pick.MaxBackends+1, 1), "4097 backends are too many: at most 4096"},
	} {
		for _, name := range pick.Names() {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				p, err := pick.New(name, tc.given, pick.Options{Source: rand.NewPCG(1, 2)})
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), name) {
					t.Errorf("got %v, error %v, want one with %q", p, err, tc.want)
				}
			})
		}
	}
	if _, err := pick.New("smooth", backends(0), pick.Options{}); !errors.Is(err, weights.ErrNoWeight) {
		t.Errorf("only zeros: %v is not ErrNoWeight", err)
	}
	if p, err := pick.New("random", backends(1), pick.Options{}); err == nil || !strings.Contains(err.Error(), "no random source") {
		t.Errorf("no source: got %v, error %v", p, err)
	}
	if p, err := pick.New("smooth", backends(1), pick.Options{MaxFails: -1}); err == nil || !strings.Contains(err.Error(), "maxFails -1") {
		t.Errorf("negative maxFails: got %v, error %v", p, err)
	}
}

// Whatever the weights, a picker picks a backend, and never one with weight 0.
func TestPickIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := backends(weightsOf(t, "weights", 12, math.MaxInt32)...)
		keys := rapid.SliceOfN(rapid.Uint64(), 20, 20).Draw(t, "keys")
		// A unit of this size keeps the ring small and fast.
		ring, err := pick.NewRing(list, 1<<31)
		if err != nil {
			t.Fatal(err)
		}
		pickers := map[string]pick.Picker{"consistent-hash": ring}
		for _, name := range pick.Names() {
			if pickers[name] == nil {
				pickers[name] = must(t, name, list)
			}
			for _, key := range keys {
				if i := pickers[name].Pick(key); i < 0 || i >= len(list) || list[i].Weight == 0 {
					t.Fatalf("%s picked %d of %v", name, i, list)
				}
			}
		}
	})
}

func TestPickDoesNotAllocate(t *testing.T) {
	list := backends(5, 3, 2)
	for _, name := range pick.Names() {
		p, key := must(t, name, list), uint64(0)
		if allocs := testing.AllocsPerRun(100, func() { key += 1 << 57; p.Pick(key) }); allocs != 0 {
			t.Errorf("%s: %v allocations per pick", name, allocs)
		}
	}
}

// Several callers at once get together what one would get: the pickers that keep
// count stay exact, and those that look at the key give the same answers.
func TestConcurrentCallers(t *testing.T) {
	const callers, cycles = 4, 250
	list := backends(5, 3, 0, 2)
	for _, tc := range []struct {
		name string
		want []int64
	}{
		{"round-robin", nil},
		{"naive", []int64{5000, 3000, 0, 2000}},
		{"smooth", []int64{5000, 3000, 0, 2000}},
		{"random", nil},
		{"consistent-hash", nil},
		{"buckets", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := must(t, tc.name, list)
			counts := make([][]int64, callers)
			var wg sync.WaitGroup
			for c := range callers {
				counts[c] = make([]int64, len(list))
				wg.Go(func() {
					for i := range cycles * 10 {
						counts[c][p.Pick(pick.Key(fmt.Sprint(i)))]++
					}
				})
			}
			wg.Wait()
			sum := make([]int64, len(list))
			for _, count := range counts {
				for i, n := range count {
					sum[i] += n
				}
			}
			want := tc.want
			if want == nil {
				// One caller, as many picks. Draws come in the same order whoever asks.
				want = make([]int64, len(list))
				one := must(t, tc.name, list)
				for i := range callers * cycles * 10 {
					want[one.Pick(pick.Key(fmt.Sprint(i%(cycles*10))))]++
				}
			}
			if diff := cmp.Diff(want, sum); diff != "" {
				t.Errorf("requests per backend (-want +got):\n%s", diff)
			}
		})
	}
}

func BenchmarkPick(b *testing.B) {
	for _, name := range []string{"smooth", "random", "consistent-hash"} {
		for _, n := range []int{2, 16, 1024} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				given := make([]int32, n)
				for i := range given {
					given[i] = int32(1 + i%10)
				}
				p, key := must(b, name, backends(given...)), uint64(0)
				b.ReportAllocs()
				for b.Loop() {
					key += 0x9e3779b97f4a7c15
					if p.Pick(key) < 0 {
						b.Fatal("none picked")
					}
				}
			})
		}
	}
}
