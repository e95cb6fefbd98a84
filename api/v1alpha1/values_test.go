package v1alpha1_test

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// What the schema lets through: the same expressions as in its rules.
var (
	schemaPercent  = regexp.MustCompile(`^(100([.]0{1,2})?|[0-9]{1,2}([.][0-9]{1,2})?)$`)
	schemaDecimal  = regexp.MustCompile(`^-?[0-9]{1,15}([.][0-9]{1,9})?$`)
	schemaDuration = regexp.MustCompile(`^([0-9]{1,5}(h|m|s|ms)){1,4}$`)
)

func TestPercentBasisPoints(t *testing.T) {
	for text, want := range map[v1alpha1.Percent]int{
		"0": 0, "0.00": 0, "0.01": 1, "0.5": 50, "0.05": 5, "1": 100, "5.25": 525, "05": 500,
		"99.99": 9999, "100": 10000, "100.0": 10000, "100.00": 10000,
	} {
		if got, err := text.BasisPoints(); err != nil || got != want {
			t.Errorf("Percent(%q).BasisPoints() = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []v1alpha1.Percent{
		"", " ", "5%", "5.255", "5.", ".5", "-1", "+1", "101", "100.01", "256", "1e1", "0x5", "1_0", "5,5", " 5", "5 ", "5.-1", "NaN", "٣", "five", "99999999999999999999",
	} {
		if got, err := text.BasisPoints(); err == nil {
			t.Errorf("Percent(%q).BasisPoints() = %d, want an error", text, got)
		} else if !strings.Contains(err.Error(), "percent") {
			t.Errorf("Percent(%q).BasisPoints(): the error %q does not say what is wanted", text, err)
		}
	}
}

func TestPercentFromBasisPoints(t *testing.T) {
	for bp, want := range map[int]v1alpha1.Percent{
		-1: "0", 0: "0", 1: "0.01", 5: "0.05", 50: "0.5", 100: "1", 525: "5.25", 1010: "10.1", 9999: "99.99", 10000: "100", 10001: "100", math.MaxInt: "100", math.MinInt: "0",
	} {
		if got := v1alpha1.PercentFromBasisPoints(bp); got != want {
			t.Errorf("PercentFromBasisPoints(%d) = %q, want %q", bp, got, want)
		}
	}
	for bp := range 10001 {
		p := v1alpha1.PercentFromBasisPoints(bp)
		if got, err := p.BasisPoints(); err != nil || got != bp || !schemaPercent.MatchString(string(p)) {
			t.Fatalf("%d basis points are written as %q, which reads as %d, %v", bp, p, got, err)
		}
	}
}

func TestDecimalFloat64(t *testing.T) {
	for text, want := range map[v1alpha1.Decimal]float64{"0": 0, "3": 3, "-0.5": -0.5, "0.25": 0.25, "123456789012345.123456789": 123456789012345.123456789} {
		if got, err := text.Float64(); err != nil || got != want {
			t.Errorf("Decimal(%q).Float64() = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []v1alpha1.Decimal{"", "abc", "1,5", "1 ", "1e999", "{}"} {
		if got, err := text.Float64(); err == nil {
			t.Errorf("Decimal(%q).Float64() = %v, want an error", text, got)
		}
	}
}

func TestDurationParse(t *testing.T) {
	for text, want := range map[v1alpha1.Duration]time.Duration{
		"0s": 0, "1ms": time.Millisecond, "15s": 15 * time.Second, "1h30m": 90 * time.Minute, "1m500ms": time.Minute + 500*time.Millisecond, "720h": 720 * time.Hour,
	} {
		if got, err := text.Parse(); err != nil || got != want {
			t.Errorf("Duration(%q).Parse() = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []v1alpha1.Duration{"", "5", "-5m", "5 minutes", "1d", "m", "9999999h"} {
		if got, err := text.Parse(); err == nil {
			t.Errorf("Duration(%q).Parse() = %v, want an error", text, got)
		}
	}
}

// TestNumbersOnTheWire shows what is written for what was read: a whole number
// stays a number and any other text a string.
func TestNumbersOnTheWire(t *testing.T) {
	for in, want := range map[string]string{
		`5`: `5`, `"5"`: `5`, `"0.5"`: `"0.5"`, `5.5`: `"5.5"`, `"5%"`: `"5%"`, `""`: `""`, `null`: `""`, `-1`: `-1`,
		`true`: `"true"`, `{}`: `"{}"`, `[1]`: `"[1]"`, `1e3`: `"1e3"`, `99999999999999999999`: `"99999999999999999999"`,
	} {
		var p v1alpha1.Percent
		var d v1alpha1.Decimal
		for _, v := range []json.Unmarshaler{&p, &d} {
			if err := v.UnmarshalJSON([]byte(in)); err != nil {
				t.Errorf("%T cannot be read from %s: %v", v, in, err)
				continue
			}
			if got, err := json.Marshal(v); err != nil || string(got) != want {
				t.Errorf("%T read from %s is written as %s, %v; want %s", v, in, got, err, want)
			}
		}
	}
}

// TestOddValuesDecode shows that an object whose values make no sense can be read,
// so that it does not keep the controller from listing the others. Such values are
// refused by the schema; they could only come from an object that was stored under
// another one.
func TestOddValuesDecode(t *testing.T) {
	const object = `{
		"apiVersion": "weightedrollout.dev/v1alpha1", "kind": "WeightedRollout",
		"metadata": {"name": "odd"},
		"spec": {
			"mode": "Whatever", "onDelete": "", "unknown": {"field": 1},
			"plan": {"stages": [{"weight": "5%", "soak": "5 minutes"}, {"weight": 5.5, "soak": ""}, {"weight": true}, {"weight": {}}, {}]},
			"ramp": {"minIncrease": -1, "maxIncrease": "lots", "interval": "soon"},
			"health": {"preset": "None", "window": "-1m", "checks": [{"name": "", "max": "NaN", "min": [1]}]}
		},
		"status": {"phase": "Odd", "share": {"desired": "all", "observed": 12.5}, "outcome": "Unheard"}
	}`
	var wr v1alpha1.WeightedRollout
	if err := json.Unmarshal([]byte(object), &wr); err != nil {
		t.Fatalf("the object cannot be read: %v", err)
	}
	got := map[string]string{
		"stages[0].weight": string(wr.Spec.Plan.Stages[0].Weight),
		"stages[0].soak":   string(wr.Spec.Plan.Stages[0].Soak),
		"stages[1].weight": string(wr.Spec.Plan.Stages[1].Weight),
		"stages[2].weight": string(wr.Spec.Plan.Stages[2].Weight),
		"minIncrease":      string(wr.Spec.Ramp.MinIncrease),
		"desired":          string(*wr.Status.Share.Desired),
		"observed":         string(*wr.Status.Share.Observed),
	}
	want := map[string]string{
		"stages[0].weight": "5%", "stages[0].soak": "5 minutes", "stages[1].weight": "5.5", "stages[2].weight": "true",
		"minIncrease": "-1", "desired": "all", "observed": "12.5",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was read differs (-want +got):\n%s", diff)
	}
	if _, err := wr.Spec.Plan.Stages[0].Weight.BasisPoints(); err == nil {
		t.Error("5% is taken for a weight")
	}
	if _, err := json.Marshal(&wr); err != nil {
		t.Errorf("the object cannot be written again: %v", err)
	}
}

// TestDurationKeepsNumbers reads a number in place of a duration. The schema wants a
// string there, but an object that got in some other way must not break a listing; it
// is refused where it is used.
func TestDurationKeepsNumbers(t *testing.T) {
	var s v1alpha1.Stage
	if err := json.Unmarshal([]byte(`{"weight": 5, "soak": 5}`), &s); err != nil {
		t.Fatalf("a soak of 5 cannot be read: %v", err)
	}
	if _, err := s.Soak.Parse(); err == nil {
		t.Errorf("Duration(%q).Parse() succeeds, want an error: it has no unit", s.Soak)
	}
}

func FuzzPercent(f *testing.F) {
	for _, seed := range []string{"", "5", "0.5", "100.00", "5%", "-1", "5.255", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := v1alpha1.Percent(text)
		bp, err := p.BasisPoints()
		if err != nil {
			if schemaPercent.MatchString(text) {
				t.Fatalf("the schema takes %q, which cannot be read: %v", text, err)
			}
			return
		}
		if bp < 0 || bp > 10000 {
			t.Fatalf("%q is read as %d basis points", text, bp)
		}
		if again, err := v1alpha1.PercentFromBasisPoints(bp).BasisPoints(); err != nil || again != bp {
			t.Fatalf("%q is read as %d, which comes back as %d, %v", text, bp, again, err)
		}
		onTheWire(t, &p, new(v1alpha1.Percent))
		if same, err := p.BasisPoints(); err != nil || same != bp {
			t.Fatalf("%q was changed into %q on the wire", text, p)
		}
	})
}

func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{"", "3", "-0.25", "1e9", "NaN", "Inf", "007", "-0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := v1alpha1.Decimal(text)
		before, err := d.Float64()
		if err != nil && schemaDecimal.MatchString(text) {
			t.Fatalf("the schema takes %q, which cannot be read: %v", text, err)
		}
		if err != nil || !schemaDecimal.MatchString(text) {
			return
		}
		var read v1alpha1.Decimal
		onTheWire(t, &d, &read)
		if after, err := read.Float64(); err != nil || after != before {
			t.Fatalf("%q (%v) is %q (%v, %v) after the wire", text, before, read, after, err)
		}
	})
}

func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"", "5", "30m", "1h30m", "500ms", "-5m", "99999h99999h99999h99999h", "1.5h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := v1alpha1.Duration(text).Parse()
		if err != nil && schemaDuration.MatchString(text) {
			t.Fatalf("the schema takes %q, which cannot be read: %v", text, err)
		}
		if d < 0 {
			t.Fatalf("%q is read as %v", text, d)
		}
	})
}

// FuzzNumberFromJSON shows that any JSON value can be read where a number is wanted.
func FuzzNumberFromJSON(f *testing.F) {
	for _, seed := range []string{`5`, `"5%"`, `null`, `{"a":[1]}`, `"\u0000"`, `-0`, `1e99`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return
		}
		var s v1alpha1.Stage
		if err := json.Unmarshal([]byte(`{"weight":`+string(data)+`}`), &s); err != nil {
			t.Fatalf("a weight of %s cannot be read: %v", data, err)
		}
		onTheWire(t, &s, new(v1alpha1.Stage))
	})
}

// onTheWire writes a value and reads it into another.
func onTheWire(t *testing.T, from, into any) {
	t.Helper()
	data, err := json.Marshal(from)
	if err != nil {
		t.Fatalf("%v cannot be written: %v", from, err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s cannot be read again: %v", data, err)
	}
}
