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

func TestApportion(t *testing.T) {
	for _, tc := range []struct {
		name  string
		total int64
		given []int64
		want  []int64
	}{
		{"exact", 100, []int64{90, 10}, []int64{90, 10}},
		{"one", 7, []int64{3}, []int64{7}},
		{"the largest remainder gets the rest", 10, []int64{1, 1, 4}, []int64{2, 2, 6}},
		{"of equal remainders the first", 100, []int64{1, 1, 1}, []int64{34, 33, 33}},
		{"of equal remainders the first, twice", 11, []int64{1, 1, 1}, []int64{4, 4, 3}},
		{"a zero weight gets nothing", 10, []int64{0, 1, 0, 2}, []int64{0, 3, 0, 7}},
		{"nothing to divide", 0, []int64{1, 2}, []int64{0, 0}},
		{"fewer than there are weights", 2, []int64{5, 5, 5, 6}, []int64{1, 0, 0, 1}},
		{"no overflow", math.MaxInt64, []int64{math.MaxInt64 - 1, 1}, []int64{math.MaxInt64 - 1, 1}},
		{"no overflow with remainders", math.MaxInt64, []int64{1, 1, 1}, []int64{3074457345618258603, 3074457345618258602, 3074457345618258602}},
		// Balinski and Young's example of the method, 26 seats.
		{"seats", 26, []int64{9061, 7179, 5259, 3319, 1182}, []int64{9, 7, 5, 4, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := weights.Apportion(tc.total, tc.given)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Apportion(%d, %v) (-want +got):\n%s", tc.total, tc.given, diff)
			}
		})
	}
}

func TestApportionErrors(t *testing.T) {
	for _, tc := range []struct {
		name  string
		total int64
		given []int64
		want  string
	}{
		{"negative total", -1, []int64{1}, "total -1 is negative"},
		{"negative weight", 1, []int64{1, -2}, "weight 1 is negative: -2"},
		{"no weights", 1, nil, weights.ErrNoWeight.Error()},
		{"only zeros", 1, []int64{0, 0}, weights.ErrNoWeight.Error()},
		{"too large", 1, []int64{math.MaxInt64, 1}, "add up to more than"},
		{"far too large", 1, []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, "add up to more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := weights.Apportion(tc.total, tc.given)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Apportion(%d, %v) = %v, %v, want an error with %q", tc.total, tc.given, got, err, tc.want)
			}
		})
	}
	if _, err := weights.Apportion(1, nil); !errors.Is(err, weights.ErrNoWeight) {
		t.Errorf("no weights: %v is not ErrNoWeight", err)
	}
}

func TestApportionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(0, math.MaxInt64).Draw(t, "total")
		given := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64/64), 1, 64).Draw(t, "weights")
		checkApportion(t, total, given)

		// Only proportions count.
		small := rapid.SliceOfN(rapid.Int64Range(0, 1000), 1, 8).Draw(t, "small")
		factor := rapid.Int64Range(1, 1_000_000).Draw(t, "factor")
		scaled := make([]int64, len(small))
		for i, w := range small {
			scaled[i] = w * factor
		}
		a, _ := weights.Apportion(total, small)
		b, _ := weights.Apportion(total, scaled)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("weights %v and %d times that differ (-once +scaled):\n%s", small, factor, diff)
		}
	})
}

func FuzzApportion(f *testing.F) {
	f.Add(int64(100), []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2})
	f.Add(int64(math.MaxInt64), []byte{0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(int64(-1), []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, total int64, data []byte) {
		var given []int64
		for len(data) >= 8 {
			given = append(given, int64(binary.BigEndian.Uint64(data)))
			data = data[8:]
		}
		checkApportion(t, total, given)
	})
}

// checkApportion checks that Apportion fails exactly where it should, and that its
// result is exact, within 1 of every quota, keeps the order of the weights, and gives
// to a zero nothing.
func checkApportion(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, total int64, given []int64) {
	t.Helper()
	sum, valid := new(big.Int), total >= 0
	for _, w := range given {
		sum.Add(sum, big.NewInt(w))
		valid = valid && w >= 0
	}
	valid = valid && sum.Sign() > 0 && sum.IsInt64()

	parts, err := weights.Apportion(total, given)
	if (err == nil) != valid {
		t.Fatalf("Apportion(%d, %v): error %v, but valid is %v", total, given, err, valid)
	}
	if err != nil {
		return
	}
	got := new(big.Int)
	for i, part := range parts {
		got.Add(got, big.NewInt(part))
		if part < 0 || (given[i] == 0 && part != 0) {
			t.Fatalf("weight %d gets %d of %d", given[i], part, total)
		}
		// |part*sum - total*weight| < sum
		off := new(big.Int).Mul(big.NewInt(part), sum)
		off.Sub(off, new(big.Int).Mul(big.NewInt(total), big.NewInt(given[i])))
		if off.CmpAbs(sum) >= 0 {
			t.Fatalf("part %d of weight %d is off its quota by 1 or more", part, given[i])
		}
		if i > 0 && (given[i] > given[i-1] && part < parts[i-1] || given[i] == given[i-1] && part > parts[i-1]) {
			t.Fatalf("weights %d and %d get %d and %d", given[i-1], given[i], parts[i-1], part)
		}
	}
	if got.Cmp(big.NewInt(total)) != 0 {
		t.Fatalf("the parts of %d add up to %s", total, got)
	}
}

func BenchmarkApportion(b *testing.B) {
	given := make([]int64, 16)
	for i := range given {
		given[i] = int64(i*i + 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := weights.Apportion(1_000_000, given); err != nil {
			b.Fatal(err)
		}
	}
}
