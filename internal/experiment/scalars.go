package experiment

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bytes is a size. In the file it carries its unit: B, kB, MB, GB, TB (powers
// of ten), KiB, MiB, GiB, TiB (powers of two). It is at least 1 where it is given.
type Bytes int64

// Rate is bytes per second; in the file a size followed by /s. 0 means not limited.
type Rate int64

// BitRate is a link's speed in bits per second; in the file kbit, mbit or
// gbit. 0 means not shaped.
type BitRate int64

// Duration is a length of time; in the file ms, s, m or h. 0 means not set,
// but for a warm-up, where it means none.
type Duration time.Duration

// Count is a number of things, in all (Per is "") or for each of something.
// In the file it is written 12, 2_000_000 or "4 per worker".
// Set tells a written 0 from a count that is not there.
type Count struct {
	N   int64  `json:"n"`
	Per string `json:"per"` // "", broker, worker, topic or producer
	Set bool   `json:"set"`
}

// SendRate is records per second over all producers. Max (in the file: max)
// means as fast as the cluster takes them; then Value is 0.
type SendRate struct {
	Max   bool    `json:"max"`
	Value float64 `json:"value"`
}

// countMax bounds every count, so that products of a few stay far from overflow.
const countMax = 1_000_000_000_000

var (
	wholePattern    = regexp.MustCompile(`^(0|[1-9][0-9]*(_[0-9]+)*)$`)
	quantityPattern = regexp.MustCompile(`^([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?) ?(.*)$`)
	durationPattern = regexp.MustCompile(`^([0-9]+(\.[0-9]+)? ?(ms|s|m|h))+$`)
	perPattern      = regexp.MustCompile(`^(\S+) per (\S+)$`)
)

// A unit is one suffix of a quantity and what it is worth.
type unit struct {
	name  string
	worth int64
}

// byteUnits are from the largest to the smallest.
func byteUnits() []unit {
	return []unit{{"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
		{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"kB", 1e3}, {"B", 1}}
}

func bitUnits() []unit { return []unit{{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}} }

// What the scalars look like, for errors and for the reference.
const (
	bytesForm    = "a size with its unit, such as 800B, 16KiB or 8GiB"
	rateForm     = "a size a second with its unit, such as 30MiB/s"
	bitRateForm  = "a link's speed with its unit, such as 100mbit or 1gbit"
	durationForm = "a length of time with its unit, such as 500ms, 30s, 5m or 1h30m"
	wholeForm    = "a whole number, such as 3 or 2_000_000"
	sendRateForm = "records a second, such as 5000, or max"
)

func (b *Bytes) read(s string, _ field) *refusal {
	n, r := quantity(s, byteUnits(), "", bytesForm)
	*b = Bytes(n)
	return r
}

func (v *Rate) read(s string, _ field) *refusal {
	n, r := quantity(s, byteUnits(), "/s", rateForm)
	*v = Rate(n)
	return r
}

func (v *BitRate) read(s string, _ field) *refusal {
	n, r := quantity(s, bitUnits(), "", bitRateForm)
	*v = BitRate(n)
	return r
}

// quantity reads a number with one of the units, each followed by the suffix.
// The result is whole and at least 1.
func quantity(s string, units []unit, suffix, form string) (int64, *refusal) {
	m := quantityPattern.FindStringSubmatch(s)
	if m == nil {
		return 0, &refusal{reason: quoted(s) + " is not a quantity", expected: form}
	}
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.name + suffix
	}
	i := slices.Index(names, m[2])
	if i < 0 {
		return 0, &refusal{reason: unitReason(s, m[2]), expected: form, nearest: nearestUnit(m[1], m[2], names)}
	}
	number, err := strconv.ParseFloat(strings.ReplaceAll(m[1], "_", ""), 64)
	total := number * float64(units[i].worth)
	switch {
	case err != nil || total > math.MaxInt64/4:
		return 0, &refusal{reason: quoted(s) + " is too large", expected: form}
	case total < 1:
		return 0, &refusal{reason: quoted(s) + " is below 1" + units[len(units)-1].name, expected: form}
	case math.Abs(total-math.Round(total)) > 1e-6*max(1, total/1e9):
		return 0, &refusal{reason: quoted(s) + " is not a whole number", expected: form}
	}
	return int64(math.Round(total)), nil
}

func unitReason(s, unit string) string {
	if unit == "" {
		return quoted(s) + " has no unit"
	}
	return quoted(s) + " has the unknown unit " + quoted(unit)
}

// nearestUnit proposes the number with the unit that was probably meant.
// Without a unit nothing is proposed: krig does not guess by how much.
func nearestUnit(number, unit string, names []string) string {
	if unit == "" {
		return ""
	}
	for _, n := range names {
		if strings.EqualFold(n, unit) {
			return number + n
		}
	}
	if n := Nearest(unit, names); n != "" {
		return number + n
	}
	return ""
}

func (d *Duration) read(s string, f field) *refusal {
	if !durationPattern.MatchString(s) {
		m := quantityPattern.FindStringSubmatch(s)
		if m == nil {
			return &refusal{reason: quoted(s) + " is not a length of time", expected: durationForm}
		}
		words := map[string]string{"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m",
			"minute": "m", "minutes": "m", "hour": "h", "hours": "h", "hr": "h", "msec": "ms", "S": "s", "M": "m", "H": "h"}
		near := ""
		if w, ok := words[m[2]]; ok {
			near = m[1] + w
		}
		return &refusal{reason: unitReason(s, m[2]), expected: durationForm, nearest: near}
	}
	v, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		return &refusal{reason: quoted(s) + " is too long", expected: durationForm}
	}
	if int64(v) < f.least(0) {
		return &refusal{reason: quoted(s) + " is no length of time", expected: "more than 0s"}
	}
	*d = Duration(v)
	return nil
}

func (c *Count) read(s string, f field) *refusal {
	number, per := s, ""
	if m := perPattern.FindStringSubmatch(s); m != nil {
		number, per = m[1], m[2]
	}
	if per != "" && !slices.Contains(f.per, per) {
		return &refusal{reason: quoted("per "+per) + " is not known here", expected: countForm(f), nearest: Nearest(per, f.per)}
	}
	n, r := whole(number, f.least(1))
	if r != nil {
		r.expected = countForm(f)
		return r
	}
	*c = Count{N: n, Per: per, Set: true}
	return nil
}

// countForm says what a count may look like, given what it may be per.
func countForm(f field) string {
	if len(f.per) == 0 {
		return wholeForm
	}
	return fmt.Sprintf("a whole number, such as 3 or 2_000_000, or one per %s, such as 4 per %s", strings.Join(f.per, ", "), f.per[0])
}

// whole reads digits with underscores between them.
func whole(s string, least int64) (int64, *refusal) {
	if !wholePattern.MatchString(s) {
		reason := quoted(s) + " is not a whole number"
		if rest, negative := strings.CutPrefix(s, "-"); negative && wholePattern.MatchString(rest) {
			reason = fmt.Sprintf("%s is below %d", s, least)
		}
		return 0, &refusal{reason: reason, expected: wholeForm}
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 10, 64)
	if err != nil || n > countMax {
		return 0, &refusal{reason: fmt.Sprintf("%s is above %d", s, int64(countMax)), expected: wholeForm}
	}
	if n < least {
		return 0, &refusal{reason: fmt.Sprintf("%s is below %d", s, least), expected: wholeForm}
	}
	return n, nil
}

func (v *SendRate) read(s string, _ field) *refusal {
	if s == "max" {
		*v = SendRate{Max: true}
		return nil
	}
	m := quantityPattern.FindStringSubmatch(s)
	if m == nil || m[2] != "" {
		return &refusal{reason: quoted(s) + " is not a rate", expected: sendRateForm, nearest: Nearest(s, []string{"max"})}
	}
	value, err := strconv.ParseFloat(strings.ReplaceAll(m[1], "_", ""), 64)
	if err != nil || value <= 0 || value > countMax {
		return &refusal{reason: s + " is out of range", expected: "more than 0 and at most 1e12 records a second, or max"}
	}
	*v = SendRate{Value: value}
	return nil
}

// String is the shortest exact form that the file accepts.
func (b Bytes) String() string {
	for _, u := range byteUnits() {
		if int64(b)%u.worth == 0 && int64(b) != 0 {
			return strconv.FormatInt(int64(b)/u.worth, 10) + u.name
		}
	}
	return "0B"
}

// String is the shortest exact form that the file accepts.
func (v Rate) String() string { return Bytes(v).String() + "/s" }

// String is the shortest exact form that the file accepts.
func (v BitRate) String() string {
	for _, u := range bitUnits() {
		if int64(v)%u.worth == 0 {
			return strconv.FormatInt(int64(v)/u.worth, 10) + u.name
		}
	}
	return strconv.FormatFloat(float64(v)/1e3, 'f', -1, 64) + "kbit"
}

// String is time.Duration's without the zeros at its end: 5m, not 5m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// String is the form that the file accepts; "" for a count that is not set.
func (c Count) String() string {
	switch {
	case !c.Set:
		return ""
	case c.Per == "":
		return strconv.FormatInt(c.N, 10)
	}
	return strconv.FormatInt(c.N, 10) + " per " + c.Per
}

// String is the form that the file accepts.
func (v SendRate) String() string {
	if v.Max {
		return "max"
	}
	return strconv.FormatFloat(v.Value, 'f', -1, 64)
}

// quoted cuts long text, so that an error stays one line.
func quoted(s string) string {
	const longest = 60
	if len(s) > longest {
		s = s[:longest] + "..."
	}
	return strconv.Quote(s)
}
