package weights_test

import (
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights"
)

func TestReduce(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given []int64
		want  []int64
	}{
		{"by the common divisor", []int64{64, 16}, []int64{4, 1}},
		{"already reduced", []int64{5, 3, 2}, []int64{5, 3, 2}},
		{"one", []int64{7000}, []int64{1}},
		{"a zero stays", []int64{0, 20, 30}, []int64{0, 2, 3}},
		{"exact up to 100", []int64{100, 99}, []int64{100, 99}},
		{"exact, however large", []int64{math.MaxInt64 / 2 / 100 * 100, math.MaxInt64 / 2 / 100 * 99}, []int64{100, 99}},
		{"rounded above 100", []int64{200, 101}, []int64{100, 51}},
		{"rounded to the nearest", []int64{1000, 334, 333, 6, 4}, []int64{100, 33, 33, 1, 1}},
		{"never to 0", []int64{1_000_000, 1}, []int64{100, 1}},
		{"never to 0, no overflow", []int64{math.MaxInt64 - 1, 1}, []int64{100, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := weights.Reduce(tc.given)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Reduce(%v) (-want +got):\n%s", tc.given, diff)
			}
		})
	}
}

func TestAtLeastOne(t *testing.T) {
	for _, tc := range []struct {
		name  string
		total int64
		given []int64
		want  []int64
	}{
		{"nobody is empty", 100, []int64{90, 10}, []int64{90, 10}},
		{"the light one gets 1", 100, []int64{1000, 1}, []int64{99, 1}},
		{"a zero gets nothing", 100, []int64{0, 1000, 1}, []int64{0, 99, 1}},
		{"just enough", 3, []int64{1000, 1, 1}, []int64{1, 1, 1}},
		// 10:10:1:1 of 4 is 2 2 0 0. After 1 for each of the light ones 2 are left.
		{"the others pay", 4, []int64{10, 10, 1, 1}, []int64{1, 1, 1, 1}},
		// 96:3:1 of 10 is 10 0 0; then 8 for 96.
		{"two are raised", 10, []int64{96, 3, 1}, []int64{8, 1, 1}},
		// 7 of 60:12:5:5 is 5 1 1 0: one is raised. 6 among 60:12:5 is 5 1 0: the next.
		{"a raise empties the next", 7, []int64{60, 12, 5, 5}, []int64{4, 1, 1, 1}},
		{"not enough", 1, []int64{1, 2, 1}, []int64{0, 1, 0}},
		{"no overflow", math.MaxInt64, []int64{math.MaxInt64 - 1, 1}, []int64{math.MaxInt64 - 1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := weights.AtLeastOne(tc.total, tc.given)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("AtLeastOne(%d, %v) (-want +got):\n%s", tc.total, tc.given, diff)
			}
		})
	}
}

func TestReduceErrors(t *testing.T) {
	for _, tc := range []struct {
		name  string
		given []int64
		want  string
	}{
		{"negative", []int64{1, -2}, "weight 1 is negative: -2"},
		{"none", nil, weights.ErrNoWeight.Error()},
		{"only zeros", []int64{0, 0}, weights.ErrNoWeight.Error()},
		{"too large", []int64{math.MaxInt64, 1}, "add up to more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, err := weights.Reduce(tc.given); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Reduce(%v) = %v, %v, want an error with %q", tc.given, got, err, tc.want)
			}
			if got, err := weights.AtLeastOne(5, tc.given); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("AtLeastOne(5, %v) = %v, %v, want an error with %q", tc.given, got, err, tc.want)
			}
		})
	}
	if _, err := weights.Reduce(nil); !errors.Is(err, weights.ErrNoWeight) {
		t.Errorf("no weights: %v is not ErrNoWeight", err)
	}
	for _, total := range []int64{0, -1, math.MinInt64} {
		if got, err := weights.AtLeastOne(total, []int64{1}); err == nil || !strings.Contains(err.Error(), "at least 1") {
			t.Errorf("AtLeastOne(%d) = %v, %v, want an error", total, got, err)
		}
	}
}

func TestReduceProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.SliceOfN(rapid.OneOf(
			rapid.Int64Range(0, 300), rapid.Int64Range(0, math.MaxInt64/64),
		), 1, 64).Draw(t, "weights")
		total := rapid.OneOf(rapid.Int64Range(1, 300), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "total")
		checkReduce(t, given)
		checkAtLeastOne(t, total, given)

		// Small weights times a factor are themselves again.
		small := rapid.SliceOfN(rapid.Int64Range(1, 100), 1, 16).Draw(t, "small")
		factor := rapid.Int64Range(1, 1_000_000).Draw(t, "factor")
		scaled := make([]int64, len(small))
		for i, w := range small {
			scaled[i] = w * factor
		}
		once, _ := weights.Reduce(small)
		again, _ := weights.Reduce(scaled)
		if diff := cmp.Diff(once, again); diff != "" {
			t.Fatalf("%v and %d times that differ (-once +scaled):\n%s", small, factor, diff)
		}
	})
}

func FuzzReduce(f *testing.F) {
	f.Add(int64(100), []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2})
	f.Add(int64(2), []byte{0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Add(int64(-1), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, total int64, data []byte) {
		var given []int64
		for len(data) >= 8 {
			given = append(given, int64(binary.BigEndian.Uint64(data)))
			data = data[8:]
		}
		checkReduce(t, given)
		checkAtLeastOne(t, total, given)
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkReduce checks that Reduce fails exactly where Apportion does, that its result
// is from 1 to 100 and 0 only for 0, exact where the common divisor makes it so,
// and otherwise within a half (or at 1) of the proportion to the largest.
func checkReduce(t failer, given []int64) {
	t.Helper()
	reduced, err := weights.Reduce(given)
	if _, want := weights.Apportion(1, given); (err == nil) != (want == nil) {
		t.Fatalf("Reduce(%v): %v, but Apportion: %v", given, err, want)
	}
	if err != nil {
		return
	}
	var largest, largestReduced int64
	divisor := new(big.Int)
	for i, w := range given {
		divisor.GCD(nil, nil, divisor, big.NewInt(w))
		largest, largestReduced = max(largest, w), max(largestReduced, reduced[i])
	}
	exact := largest/divisor.Int64() <= weights.MaxReduced
	if !exact && largestReduced != weights.MaxReduced {
		t.Fatalf("Reduce(%v) = %v does not use its range", given, reduced)
	}
	for i, w := range given {
		got := reduced[i]
		if (got == 0) != (w == 0) || got < 0 || got > weights.MaxReduced {
			t.Fatalf("Reduce(%v) = %v: %d becomes %d", given, reduced, w, got)
		}
		// off = got*largest - w*largestReduced, 0 where the proportion is exact.
		off := new(big.Int).Mul(big.NewInt(got), big.NewInt(largest))
		off.Sub(off, new(big.Int).Mul(big.NewInt(w), big.NewInt(largestReduced)))
		if exact && off.Sign() != 0 {
			t.Fatalf("Reduce(%v) = %v is not exact at %d", given, reduced, i)
		}
		if off.Lsh(off, 1).CmpAbs(big.NewInt(largest)) > 0 && got != 1 {
			t.Fatalf("Reduce(%v) = %v is off by more than a half at %d", given, reduced, i)
		}
	}
}

// checkAtLeastOne checks that AtLeastOne fails exactly where it should, and that its
// result is exact, feeds every weight above 0 where it can, gives a part above 1 to
// none whose quota is a whole lower, keeps the order, and is Apportion's wherever
// that leaves nobody empty.
func checkAtLeastOne(t failer, total int64, given []int64) {
	t.Helper()
	parts, err := weights.AtLeastOne(total, given)
	plain, plainErr := weights.Apportion(total, given)
	if (err == nil) != (plainErr == nil && total >= 1) {
		t.Fatalf("AtLeastOne(%d, %v): %v, but Apportion: %v", total, given, err, plainErr)
	}
	if err != nil {
		return
	}
	sum, got := new(big.Int), new(big.Int)
	var positive int64
	emptied := false
	for i, w := range given {
		sum.Add(sum, big.NewInt(w))
		got.Add(got, big.NewInt(parts[i]))
		if w > 0 {
			positive++
			emptied = emptied || plain[i] == 0
		}
	}
	if got.Cmp(big.NewInt(total)) != 0 {
		t.Fatalf("the parts of %d among %v add up to %s", total, given, got)
	}
	if !emptied || total < positive {
		if diff := cmp.Diff(plain, parts); diff != "" {
			t.Fatalf("AtLeastOne(%d, %v) is not Apportion's (-plain +got):\n%s", total, given, diff)
		}
		return
	}
	for i, w := range given {
		if parts[i] < 0 || (w > 0) != (parts[i] > 0) {
			t.Fatalf("AtLeastOne(%d, %v) = %v: %d gets %d", total, given, parts, w, parts[i])
		}
		above := new(big.Int).Mul(big.NewInt(parts[i]), sum)
		above.Sub(above, new(big.Int).Mul(big.NewInt(total), big.NewInt(w)))
		if parts[i] > 1 && above.Cmp(sum) >= 0 {
			t.Fatalf("AtLeastOne(%d, %v) = %v: %d gets a whole more than its quota", total, given, parts, w)
		}
		if i > 0 && (w > given[i-1] && parts[i] < parts[i-1] || w == given[i-1] && parts[i] > parts[i-1]) {
			t.Fatalf("AtLeastOne(%d, %v) = %v: weights %d and %d are out of order", total, given, parts, given[i-1], w)
		}
	}
}

func BenchmarkReduce(b *testing.B) {
	given := make([]int64, 16)
	for i := range given {
		given[i] = int64(i*i*1000 + 7)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := weights.Reduce(given); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAtLeastOne(b *testing.B) {
	given := make([]int64, 16)
	for i := range given {
		given[i] = int64(i*i*i*i + 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := weights.AtLeastOne(100, given); err != nil {
			b.Fatal(err)
		}
	}
}
