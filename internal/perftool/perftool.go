// Package perftool reads what Kafka's own performance tools print, in every
// form since Kafka 0.8. It is a package of its own because it knows nothing of
// how the tools are run: output that somebody else has kept reads the same.
//
// All values are in base units: seconds, bytes, bytes/s, records/s. The tools'
// "MB" is 1024 × 1024 bytes in every version. What a tool printed as NaN or
// Infinity is no value (nil).
package perftool

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// mib is what both tools call an MB.
const mib = 1 << 20

// prefix is what some builds log before each line of a result.
var prefix = regexp.MustCompile(`^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.:]\d{1,3})\]\s+(?:[A-Z]+ )?`)

// cutPrefix takes a log prefix off a line and returns the time in it, read as UTC.
func cutPrefix(line string) (time.Time, string) {
	m := prefix.FindStringSubmatch(line)
	if m == nil {
		return time.Time{}, line
	}
	at, _ := parseTime(m[1])
	return at, line[len(m[0]):]
}

// parseTime reads the tools' dates, in which a colon, a comma or a point may
// stand before the milliseconds. They carry no zone and are read as UTC.
func parseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexAny(s, ":,."); i == len("2006-01-02 15:04:05") {
		s = s[:i] + "." + s[i+1:]
	}
	t, err := time.Parse("2006-01-02 15:04:05.999", s)
	return t, err == nil
}

// number reads a number with a decimal point or comma. NaN and infinities are
// no value; ok is false when it is no number at all.
func number(s string) (value *float64, ok bool) {
	s = strings.TrimSpace(s)
	switch strings.TrimLeft(s, "+-") {
	case "NaN", "Infinity", "\u221e", "\ufffd":
		return nil, true
	}
	f, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	return &f, true
}

// inBytes is a number of the tools' MB in bytes.
func inBytes(s string) *float64 {
	v, _ := number(s)
	if v != nil {
		*v *= mib
	}
	return v
}

// inSeconds is a number of milliseconds in seconds. It divides: a product with
// 0.001 is not the number that one would write.
func inSeconds(s string) *float64 {
	v, _ := number(s)
	if v != nil {
		*v /= 1000
	}
	return v
}

// Metric is one line of the table that --print-metrics adds.
type Metric struct {
	Group, Name string
	Tags        map[string]string
	Text        string   // the value as printed
	Value       *float64 // nil when it is text, NaN or infinite
}

// parseMetric reads "group:name:{tag=value, tag=value} : value". Tags may hold
// colons and commas, so the value begins after the last " : ".
func parseMetric(line string) (Metric, bool) {
	i := strings.LastIndex(line, " : ")
	if i < 0 {
		return Metric{}, false
	}
	left, text := strings.TrimSpace(line[:i]), strings.TrimSpace(line[i+3:])
	open := strings.Index(left, ":{")
	if open < 0 || !strings.HasSuffix(left, "}") {
		return Metric{}, false
	}
	group, name, ok := strings.Cut(left[:open], ":")
	if !ok || group == "" || name == "" {
		return Metric{}, false
	}
	m := Metric{Group: group, Name: name, Text: text, Tags: parseTags(left[open+2 : len(left)-1])}
	m.Value, _ = number(text)
	return m, true
}

// parseTags reads "a=b, c=d"; a piece without an equals sign belongs to the
// value before it.
func parseTags(s string) map[string]string {
	tags := map[string]string{}
	last := ""
	for _, piece := range strings.Split(s, ", ") {
		key, value, ok := strings.Cut(piece, "=")
		switch {
		case ok:
			tags[key], last = value, key
		case last != "":
			tags[last] += ", " + piece
		}
	}
	return tags
}
