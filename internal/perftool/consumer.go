package perftool

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ConsumerRow is one row of the consumer tool: the whole run, or with
// --show-detailed-stats one reporting interval of it.
type ConsumerRow struct {
	Thread     string    // of a detailed row; "" in a summary
	Start      time.Time // read as UTC; zero in a detailed row
	End        time.Time // read as UTC
	FetchSize  *float64  // B; only 0.8 prints it
	Bytes      *float64  // keys and values
	Throughput *float64  // B/s over the whole time, the group's rebalance and an idle end included
	Records    int64
	Rate       *float64 // records/s over the whole time

	// From Kafka 1.0 on; nil where the tool does not print them or prints nonsense.
	Rebalance       *float64 // s
	Fetch           *float64 // s: the whole time without the rebalance
	FetchThroughput *float64 // B/s over Fetch
	FetchRate       *float64 // records/s over Fetch
}

// Consumer is everything that one run of the consumer tool printed. It never
// measures latency.
type Consumer struct {
	Rows     []ConsumerRow
	Detailed bool // rows are intervals, there is no summary
	// Idle is set when the tool gave up before it had what it was asked for:
	// how long it waited for a record, which Fetch and End include.
	Idle     *float64
	Metrics  []Metric
	Warnings []string // what the rows need to be understood
	Other    []string // lines that are no result; at most 100
}

// columns are the tool's headers without the leading times, by number of fields.
const (
	columnsOld   = "start.time, end.time, fetch.size, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
	columnsMid   = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"
	columnsNew   = columnsMid + columnsFetch
	columnsFetch = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)

var (
	idleLine  = regexp.MustCompile(`^WARNING: Exiting before consuming the expected number of (?:messages|records): timeout \((\d+) ms\) exceeded`)
	separator = regexp.MustCompile(`,\s+`)
	dateStart = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)
)

func splitRow(line string) []string { return separator.Split(strings.TrimSpace(line), -1) }

// ConsumerReader takes the consumer tool's lines one by one. The zero value is ready.
type ConsumerReader struct {
	out     Consumer
	header  []string
	metrics bool
}

// Line takes one line, without its end.
func (r *ConsumerReader) Line(line string) {
	line = strings.TrimRight(line, "\r\n ")
	_, body := cutPrefix(line)
	switch {
	case body == "":
	case strings.HasPrefix(body, "start.time, "), strings.HasPrefix(body, "time, "):
		r.header = splitRow(body)
		r.out.Detailed = r.header[0] == "time"
	case dateStart.MatchString(body) && r.row(body):
	case idleLine.MatchString(body):
		r.out.Idle = inSeconds(idleLine.FindStringSubmatch(body)[1])
	case strings.HasPrefix(body, "Metric Name"):
		r.metrics = true
	case r.metrics && r.metric(body):
	default:
		if len(r.out.Other) < otherMax {
			r.out.Other = append(r.out.Other, line)
		}
	}
}

func (r *ConsumerReader) metric(body string) bool {
	m, ok := parseMetric(body)
	if ok {
		r.out.Metrics = append(r.out.Metrics, m)
	}
	return ok
}

func (r *ConsumerReader) warn(text string) {
	for _, have := range r.out.Warnings {
		if have == text {
			return
		}
	}
	r.out.Warnings = append(r.out.Warnings, text)
}

// names are the columns of a row: the header's, or when that was hidden those
// that have as many fields.
func (r *ConsumerReader) names(fields []string) []string {
	names := r.header
	if names == nil {
		names = hiddenHeader(fields)
		if names == nil {
			return nil
		}
		r.out.Detailed = names[0] == "time"
		r.warn(fmt.Sprintf("the header was hidden: columns decided by their number (%d)", len(fields)))
	}
	if len(fields) == len(names)+1 && names[0] == "time" && names[1] != "threadId" {
		names = append([]string{"time", "threadId"}, names[1:]...) // up to 0.11 the id has no name
	}
	if len(fields) != len(names) {
		return nil
	}
	return names
}

func hiddenHeader(fields []string) []string {
	if len(fields) < 2 {
		return nil
	}
	if !dateStart.MatchString(fields[1]) { // an id follows the time: a detailed row
		switch len(fields) {
		case 6, 10:
			return append([]string{"time", "threadId"}, splitRow(columnsNew)[2:len(fields)]...)
		case 7:
			return append([]string{"time", "threadId"}, splitRow(columnsOld)[2:]...)
		}
		return nil
	}
	switch len(fields) {
	case 6, 10:
		return splitRow(columnsNew)[:len(fields)]
	case 7:
		return splitRow(columnsOld)
	}
	return nil
}

// row reads one row of figures and tells whether it was one.
func (r *ConsumerReader) row(body string) bool {
	fields := splitRow(body)
	names := r.names(fields)
	if names == nil {
		return false
	}
	var row ConsumerRow
	for i, name := range names {
		if !row.set(name, fields[i]) {
			return false
		}
	}
	if row.Rebalance != nil && (*row.Rebalance > 1e8 || row.Fetch != nil && *row.Fetch < 0) {
		row.Rebalance, row.Fetch, row.FetchThroughput, row.FetchRate = nil, nil, nil, nil
		r.warn("the tool of Kafka 1.0 to 2.7 printed a wrong rebalance time: its four fetch columns are left out")
	}
	r.out.Rows = append(r.out.Rows, row)
	return true
}

// set takes one field; false when it cannot be read. Unknown columns are left out.
func (row *ConsumerRow) set(name, field string) bool {
	var ok bool
	switch name {
	case "start.time":
		row.Start, ok = parseTime(field)
		return ok
	case "end.time", "time":
		row.End, ok = parseTime(field)
		return ok
	case "threadId":
		row.Thread = field
		return true
	case "data.consumed.in.nMsg":
		n, err := strconv.ParseInt(field, 10, 64)
		row.Records = n
		return err == nil
	}
	into, read := row.figure(name)
	if into == nil {
		return true
	}
	if _, ok = number(field); ok {
		*into = read(field)
	}
	return ok
}

// figure is where a column's number goes and what makes it a base unit.
func (row *ConsumerRow) figure(name string) (into **float64, read func(string) *float64) {
	plain := func(s string) *float64 { v, _ := number(s); return v }
	switch name {
	case "fetch.size":
		return &row.FetchSize, plain
	case "data.consumed.in.MB":
		return &row.Bytes, inBytes
	case "MB.sec":
		return &row.Throughput, inBytes
	case "nMsg.sec":
		return &row.Rate, plain
	case "rebalance.time.ms":
		return &row.Rebalance, inSeconds
	case "fetch.time.ms":
		return &row.Fetch, inSeconds
	case "fetch.MB.sec":
		return &row.FetchThroughput, inBytes
	case "fetch.nMsg.sec":
		return &row.FetchRate, plain
	}
	return nil, nil
}

// Result is what was read so far. It shares memory with the reader.
func (r *ConsumerReader) Result() *Consumer { return &r.out }
