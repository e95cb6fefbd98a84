package compare

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxText is the length in bytes of the longest text of an Inferiority.
const maxText = 256

// String writes the evidence down, for ParseInferiority: the logs of the cash and of
// each bet, and with a margin also the margin and what is remembered of stable. With
// nothing seen and no margin it is empty.
func (i Inferiority) String() string {
	if i == (Inferiority{}) {
		return ""
	}
	b := strconv.AppendFloat(make([]byte, 0, maxText), i.cash, 'f', 4, 64)
	for _, bet := range i.bets {
		b = strconv.AppendFloat(append(b, ' '), bet, 'f', 4, 64)
	}
	if i.margin > 0 {
		b = strconv.AppendFloat(append(b, ' '), i.margin, 'g', -1, 64)
		b = strconv.AppendFloat(append(b, ' '), i.stable.Bad, 'g', 9, 64)
		b = strconv.AppendFloat(append(b, ' '), i.stable.Total, 'g', 9, 64)
	}
	return string(b)
}

// ParseInferiority reads what String has written; an empty text is the zero value.
// Logs come back to within 0.001. It fails on a text that String cannot have written:
// other fields, NaN or infinite ones, or a wealth that no evidence can have reached.
func ParseInferiority(text string) (Inferiority, error) {
	if text == "" {
		return Inferiority{}, nil
	}
	if len(text) > maxText {
		return Inferiority{}, fmt.Errorf("the evidence has %d bytes, and at most %d were written: start it over", len(text), maxText)
	}
	words := strings.Fields(text)
	if len(words) != 1+bets && len(words) != 1+bets+3 {
		return Inferiority{}, fmt.Errorf("the evidence has %d fields, not %d or %d: start it over", len(words), 1+bets, 1+bets+3)
	}
	fields := make([]float64, 1+bets+3)
	for k, word := range words {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return Inferiority{}, fmt.Errorf("field %d of the evidence, %q, is not a finite number: start it over", k+1, word)
		}
		fields[k] = x
	}
	i := Inferiority{cash: fields[0], bets: [bets]float64(fields[1:])}
	if err := i.checkLogs(); err != nil {
		return Inferiority{}, err
	}
	if len(words) == 1+bets {
		return i, nil
	}
	i.margin, i.stable = fields[1+bets], Counts{Bad: fields[2+bets], Total: fields[3+bets]}
	return i, i.checkMargin()
}

func (i Inferiority) checkLogs() error {
	for k, log := range append(i.bets[:], i.cash) {
		if log < minLog {
			return fmt.Errorf("part %d of the evidence is %v, below %v: start it over", k+1, log, minLog)
		}
	}
	if log := i.log(); log > math.Log(maxWealth)+1e-3 {
		return fmt.Errorf("the evidence is a wealth of exp(%.4g), above %.0g: start it over", log, float64(maxWealth))
	}
	return nil
}

func (i Inferiority) checkMargin() error {
	if !(i.margin > 0 && i.margin <= 1) {
		return fmt.Errorf("the evidence has the margin %v, which is not above 0 and at most 1: start it over", i.margin)
	}
	if s := i.stable; !(s.Bad >= 0 && s.Bad <= s.Total && s.Total <= memory(i.margin)*(1+1e-6)) {
		return errors.New("the evidence has counts of stable that cannot be: start it over")
	}
	return nil
}
