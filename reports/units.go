package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"krig/internal/result"
)

// scale is one unit that people read, and how many base units it holds.
type scale struct {
	factor float64
	unit   string
}

// units chooses the units that one report shows. Binary shows rates of data as
// MiB/s, as Kafka's own tools count them; without it they are MB/s.
type units struct{ binary bool }

// scales are the units that a base unit may be shown in, largest first.
func (u units) scales(base string) []scale {
	switch base {
	case result.BytesPerSecond:
		if u.binary {
			return []scale{{1 << 30, "GiB/s"}, {1 << 20, "MiB/s"}, {1 << 10, "KiB/s"}, {1, "B/s"}}
		}
		return []scale{{1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}}
	case result.Bytes:
		return []scale{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}
	case result.Seconds:
		return []scale{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}
	case result.RecordsPerSecond:
		return []scale{{1e6, "M records/s"}, {1, "records/s"}}
	case result.Ratio:
		return []scale{{0.01, "%"}}
	}
	return []scale{{1, base}}
}

// scaleFor is the unit in which a value of at most top is best read. Figures
// of one column or one picture share it.
func (u units) scaleFor(base string, top float64) scale {
	all := u.scales(base)
	for _, s := range all {
		if math.Abs(top) >= s.factor {
			return s
		}
	}
	if base == result.BytesPerSecond {
		return all[1] // an idle link reads 0 MB/s, not 0 B/s
	}
	return all[len(all)-1]
}

// show is a value with its unit, in the unit that suits it.
func (u units) show(v float64, base string) string {
	s := u.scaleFor(base, v)
	return join(s.number(v), s.unit)
}

// number is a value in this unit, without the unit, to three figures.
func (s scale) number(v float64) string { return figures(v / s.factor) }

func join(number, unit string) string {
	if unit == "" {
		return number
	}
	return number + " " + unit
}

// figures shows a number to three significant figures, and every digit before
// the point, thousands apart.
func figures(v float64) string {
	if v == 0 {
		return "0"
	}
	abs := math.Abs(v)
	switch {
	case abs >= 99.95:
		return thousands(strconv.FormatFloat(math.Round(v), 'f', 0, 64))
	case abs >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case abs >= 0.9995:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case abs >= 0.001:
		return strconv.FormatFloat(v, 'f', 3, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// percent shows a ratio's share as people say it: 0.963 is 96 %.
func percent(share float64) string {
	if math.Abs(share) < 0.095 {
		return fmt.Sprintf("%.1f %%", share*100)
	}
	return fmt.Sprintf("%.0f %%", share*100)
}

// signedPercent shows a change: 0.33 is +33 %.
func signedPercent(change float64) string {
	return fmt.Sprintf("%+.0f %%", change*100)
}

// configured shows a value that somebody wrote in a file: in the unit, of
// powers of ten or of two, in which it is a whole number.
func (u units) configured(v float64, base string) string {
	for _, binary := range []bool{true, false} {
		for _, s := range (units{binary}).scales(base) {
			if n := v / s.factor; s.factor > 1 && n >= 1 && n == math.Trunc(n) && n < 10_000 {
				return join(tickText(n), s.unit)
			}
		}
	}
	return u.show(v, base)
}

// multiple shows a ratio of two figures: 2.41 ×.
func multiple(ratio float64) string { return figures(ratio) + " ×" }
