package score_test

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weightedrollout/weightedrollout/internal/weights/score"
)

func TestEntropy(t *testing.T) {
	nan := math.NaN()
	for _, tc := range []struct {
		name string
		rows [][]float64
		want []float64
	}{
		{
			// By hand. Columns brought to 0 to 1: (0, 1/2, 1/2, 1), (0, 0, 0, 1), constant.
			// Parts of the first: 0, 1/4, 1/4, 1/2; its entropy is 2 * 1/4 ln 4 + 1/2 ln 2 =
			// 3/2 ln 2, divided by ln 4 it is 3/4, less than 1 by 1/4. The second has the
			// parts 0, 0, 0, 1 and entropy 0, less than 1 by 1. The third weighs 0. So
			// 1/4 : 1 : 0 is 1/5, 4/5, 0.
			"by hand", [][]float64{
				{10, 0.01, 7},
				{30, 0.01, 7},
				{30, 0.01, 7},
				{50, 0.05, 7},
			}, []float64{0.2, 0.8, 0},
		},
		{"a row with a missing value is left out", [][]float64{
			{10, 0.01}, {nan, 900}, {30, 0.01}, {800, math.Inf(1)}, {30, 0.01}, {50, 0.05},
		}, []float64{0.2, 0.8}},
		{"all constant", [][]float64{{1, 0}, {1, 0}, {1, 0}}, []float64{0.5, 0.5}},
		{"one signal", [][]float64{{1}, {2}, {3}}, []float64{1}},
		{"two rows tell the same of all that vary", [][]float64{{1, 5, 3}, {2, 900, 3}}, []float64{0.5, 0.5, 0}},
		{"huge", [][]float64{{-math.MaxFloat64, 1}, {math.MaxFloat64, 1}}, []float64{1, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := score.Entropy(tc.rows)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, tc := range []struct {
		name    string
		rows    [][]float64
		noValue bool
		want    string
	}{
		{"no rows", nil, true, "0 of 0 rows"},
		{"one row", [][]float64{{1}}, true, "1 of 1 rows"},
		{"one whole row", [][]float64{{1, 1}, {1, nan}}, true, "1 of 2 rows"},
		{"no signals", [][]float64{{}, {}}, false, "row 0 has 0 signals"},
		{"unequal rows", [][]float64{{1, 2}, {1}}, false, "row 1 has 1 signals, row 0 has 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := score.Entropy(tc.rows)
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, score.ErrNoValue) != tc.noValue {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// The weights add up to 1, the unit of a signal does not count, the input stays as it
// was, and a constant signal takes no weight from the others.
func TestEntropyProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "signals")
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.Float64Range(0, 1000), n, n), 2, 20).Draw(t, "rows")
		unit := rapid.Float64Range(0.01, 100).Draw(t, "unit")
		want, err := score.Entropy(rows)
		if err != nil {
			t.Fatal(err)
		}
		checkSum(t, want)
		allConstant := true
		other := make([][]float64, len(rows))
		for i, row := range rows {
			other[i] = append(append([]float64{}, row...), 42)
			other[i][0] *= unit
			allConstant = allConstant && cmp.Equal(row, rows[0])
		}
		got, err := score.Entropy(other)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(append([]float64{}, want...), 0), got, near2); !allConstant && diff != "" {
			t.Fatalf("another unit and a constant signal (-without +with):\n%s", diff)
		}
	})
}

func FuzzEntropy(f *testing.F) {
	f.Add(2, []byte{0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0})
	f.Add(1, []byte{0x7f, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xef, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(1, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, n int, data []byte) {
		var rows [][]float64
		n = min(max(n, 1), 8)
		for len(data) >= 8*n {
			row := make([]float64, n)
			for i := range row {
				row[i] = math.Float64frombits(binary.BigEndian.Uint64(data))
				data = data[8:]
			}
			rows = append(rows, row)
		}
		weights, err := score.Entropy(rows)
		if err != nil {
			return
		}
		checkSum(t, weights)
		union, err := score.Union(weights, weights, score.SevenToThree)
		if err != nil {
			t.Fatal(err)
		}
		checkSum(t, union)
	})
}
