package v1alpha1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Percent is a percentage from 0 to 100: an integer (5) or a decimal string
// with up to two places ("0.5"), never with a percent sign.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100 : self.matches('^(100([.]0{1,2})?|[0-9]{1,2}([.][0-9]{1,2})?)$')",message="must be a percentage from 0 to 100, written as an integer (5) or as a decimal string with up to two places (\"0.5\"), without a percent sign"
type Percent string

// BasisPoints returns the percentage in hundredths of a percent, 0 to 10000.
// It fails on a text that is no percentage.
func (p Percent) BasisPoints() (int, error) {
	whole, fraction, _ := strings.Cut(string(p), ".")
	w, err := strconv.ParseUint(whole, 10, 8)
	if err != nil || w > 100 || len(fraction) > 2 || strings.HasSuffix(string(p), ".") {
		return 0, fmt.Errorf("%q is no percentage: write an integer (5) or a decimal with up to two places (\"0.5\") from 0 to 100, without a percent sign", string(p))
	}
	var f uint64
	if fraction != "" {
		if f, err = strconv.ParseUint((fraction + "0")[:2], 10, 8); err != nil {
			return 0, fmt.Errorf("%q is no percentage: the part after the point must be one or two digits", string(p))
		}
	}
	bp := int(w*100 + f)
	if bp > 10000 {
		return 0, fmt.Errorf("%q is above 100 percent", string(p))
	}
	return bp, nil
}

// PercentFromBasisPoints writes hundredths of a percent as a Percent: "5",
// "0.5", "12.34". Values outside 0 to 10000 are clamped.
func PercentFromBasisPoints(bp int) Percent {
	bp = min(max(bp, 0), 10000)
	s := strconv.Itoa(bp / 100)
	if rest := bp % 100; rest != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%02d", rest), "0")
	}
	return Percent(s)
}

// MarshalJSON writes a whole percentage as a number and any other as a string.
func (p Percent) MarshalJSON() ([]byte, error) { return marshalIntOrString(string(p)) }

// UnmarshalJSON reads a number or a string. It keeps the text as it is, so that
// one odd object never breaks the listing of all.
func (p *Percent) UnmarshalJSON(b []byte) error {
	s, err := unmarshalIntOrString(b)
	*p = Percent(s)
	return err
}

// Decimal is a number: an integer (3) or a decimal string ("0.25").
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=26
// +kubebuilder:validation:XValidation:rule="type(self) == int || self.matches('^-?[0-9]{1,15}([.][0-9]{1,9})?$')",message="must be a number, written as an integer (3) or as a decimal string (\"0.25\")"
type Decimal string

// Float64 returns the number. It fails on a text that is none.
func (d Decimal) Float64() (float64, error) {
	f, err := strconv.ParseFloat(string(d), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number: write an integer (3) or a decimal string (\"0.25\")", string(d))
	}
	return f, nil
}

// MarshalJSON writes a whole number as a number and any other as a string.
func (d Decimal) MarshalJSON() ([]byte, error) { return marshalIntOrString(string(d)) }

// UnmarshalJSON reads a number or a string and keeps the text as it is.
func (d *Decimal) UnmarshalJSON(b []byte) error {
	s, err := unmarshalIntOrString(b)
	*d = Decimal(s)
	return err
}

func marshalIntOrString(s string) ([]byte, error) {
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return []byte(strconv.FormatInt(i, 10)), nil
	}
	return json.Marshal(s)
}

func unmarshalIntOrString(b []byte) (string, error) {
	if len(b) > 0 && b[0] == '"' {
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	}
	if bytes.Equal(b, []byte("null")) {
		return "", nil
	}
	return string(b), nil
}

// Duration is a length of time in the Gateway API's notation: up to four
// numbers with a unit of h, m, s or ms, such as "30m", "1h30m" or "500ms".
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=24
type Duration string

// UnmarshalJSON reads a string, and keeps the text of anything else as it is, so
// that one odd object never breaks the listing of all.
func (d *Duration) UnmarshalJSON(b []byte) error {
	s, err := unmarshalIntOrString(b)
	*d = Duration(s)
	return err
}

// Parse returns the length of time. It fails on a text that is none.
func (d Duration) Parse() (time.Duration, error) {
	v, err := time.ParseDuration(string(d))
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is no duration: write numbers with a unit of h, m, s or ms, such as 30m or 1h30m", string(d))
	}
	return v, nil
}
