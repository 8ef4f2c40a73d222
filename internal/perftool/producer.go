package perftool

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Interval is one progress line of the producer tool: what was acknowledged
// since the line before. Its length is uneven, at least the reporting interval.
type Interval struct {
	At         time.Time // when it was printed; zero when not known
	Records    int64
	Rate       *float64 // records/s over its true length
	Throughput *float64 // B/s
	Mean, Max  *float64 // latency from the send call, s
	Steady     bool     // after the tool's own warm-up
}

// Length is how long the interval was; 0 when its rate is not known.
func (i Interval) Length() time.Duration { return length(i.Records, i.Rate) }

// Total is a summary of the producer tool. Latency is from the send call.
// Percentiles are whole milliseconds over at most 500,000 sampled records and
// cannot be merged with those of another process.
type Total struct {
	At                  time.Time // when it was printed; zero when not known
	Records             int64
	Rate                *float64 // records/s, from the first send to the end of close or flush
	Throughput          *float64 // B/s
	Mean, Max           *float64 // s; nil when not measured
	P50, P95, P99, P999 *float64 // s; nil when not measured
}

// Length is the time from the first send to the end of close or flush; 0 when
// the rate is not known.
func (t Total) Length() time.Duration { return length(t.Records, t.Rate) }

func length(records int64, rate *float64) time.Duration {
	if rate == nil || *rate <= 0 {
		return 0
	}
	return time.Duration(float64(records) / *rate * float64(time.Second))
}

// Producer is everything that one run of the producer tool printed.
type Producer struct {
	Intervals []Interval
	Total     *Total     // of the whole run; nil when it was cut short
	Steady    *Total     // after the tool's own warm-up (Kafka 4.2 and later)
	Old       *OldHeader // only for the comma-separated form of Kafka 0.8
	Payloads  int64      // messages read from a payload file; 0 without one
	Metrics   []Metric
	Other     []string // lines that are no result: warnings, deprecations, stack traces; at most 100
}

// OldHeader is what the producer tool of 0.8 tells besides its result.
type OldHeader struct {
	Start, End  time.Time
	Compression int // codec number: 0 none, 1 gzip, 2 snappy
	RecordSize  int64
	BatchSize   int64
	Bytes       float64
}

// Records is the number of records in the total, or without one in all intervals.
func (p *Producer) Records() (n int64, fromIntervals bool) {
	if p.Total != nil {
		return p.Total.Records, false
	}
	for _, i := range p.Intervals {
		n += i.Records
	}
	return n, true
}

// Metric is a metric of the producer as a whole, by the first of several names
// that is there with a value; false without --print-metrics.
func (p *Producer) Metric(names ...string) (float64, bool) {
	for _, name := range names {
		for _, m := range p.Metrics {
			if m.Group == "producer-metrics" && m.Name == name && m.Value != nil {
				return *m.Value, true
			}
		}
	}
	return 0, false
}

// BufferWait is how long, in s, the producer waited in all for room in its
// buffer; false without --print-metrics. 0 means that the tool itself was the limit
// of a run at the highest rate.
func (p *Producer) BufferWait() (float64, bool) {
	ns, ok := p.Metric("bufferpool-wait-time-ns-total", "bufferpool-wait-time-total") // the latter until 3.1
	return ns / 1e9, ok
}

// otherMax bounds the lines kept that are no result.
const otherMax = 100

// numberPattern is a number as the tools print it, in the locale of their JVM.
const numberPattern = `([-+]?(?:NaN|Infinity|\x{221e}|\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?))`

var producerLine = regexp.MustCompile(`^(\d+)( steady state)? records sent, ` +
	numberPattern + ` records/sec \(` + numberPattern + ` MB/sec\), ` +
	numberPattern + ` ms avg latency, ` + numberPattern + `(?: ms)? max latency` +
	`(?:\.|, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99\.9th\.)$`)

const oldProducerHeader = "start.time, end.time, compression, message.size, batch.size,"

// ProducerReader takes the producer tool's lines one by one. The zero value is ready.
type ProducerReader struct {
	out     Producer
	steady  bool
	metrics bool
	old     bool
}

// Line takes one line, without its end; at is when it was printed, zero when
// that is not known. It returns the interval that the line is, else nil.
func (r *ProducerReader) Line(at time.Time, line string) *Interval {
	line = strings.TrimRight(line, "\r\n ")
	stamp, body := cutPrefix(line)
	if at.IsZero() {
		at = stamp
	}
	if m := producerLine.FindStringSubmatch(body); m != nil {
		return r.result(at, m)
	}
	if !r.context(body) && line != "" && len(r.out.Other) < otherMax {
		r.out.Other = append(r.out.Other, line)
	}
	return nil
}

// result takes a line of figures: an interval, or with percentiles a total.
func (r *ProducerReader) result(at time.Time, m []string) *Interval {
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return nil
	}
	rate, _ := number(m[3])
	throughput, mean, highest := inBytes(m[4]), inSeconds(m[5]), inSeconds(m[6])
	if m[7] == "" {
		r.out.Intervals = append(r.out.Intervals, Interval{At: at, Records: n, Rate: rate, Throughput: throughput, Mean: mean, Max: highest, Steady: r.steady})
		return &r.out.Intervals[len(r.out.Intervals)-1]
	}
	t := &Total{At: at, Records: n, Rate: rate, Throughput: throughput, Mean: mean, Max: highest}
	if n > 0 { // with nothing acknowledged the tool prints zeros
		t.P50, t.P95, t.P99, t.P999 = inSeconds(m[7]), inSeconds(m[8]), inSeconds(m[9]), inSeconds(m[10])
	}
	if m[2] != "" {
		r.out.Steady = t
	} else {
		r.out.Total = t
	}
	return nil
}

// context takes the lines that say something of the results, and tells whether this was one.
func (r *ProducerReader) context(body string) bool {
	switch {
	case body == "In steady state.":
		r.steady = true
	case strings.HasPrefix(body, "Warmup first "), strings.HasPrefix(body, "Reading payloads from: "):
	case strings.HasPrefix(body, "Number of messages read: "):
		r.out.Payloads, _ = strconv.ParseInt(strings.TrimPrefix(body, "Number of messages read: "), 10, 64)
	case strings.HasPrefix(body, "Metric Name") && strings.HasSuffix(body, "Value"):
		r.metrics = true
	case strings.HasPrefix(body, oldProducerHeader):
		r.old = true
	case r.old && r.oldRow(body):
	case r.metrics:
		m, ok := parseMetric(body)
		if ok {
			r.out.Metrics = append(r.out.Metrics, m)
		}
		return ok
	default:
		return false
	}
	return true
}

// oldRow reads a row of the comma-separated form of 0.8.
func (r *ProducerReader) oldRow(line string) bool {
	f := splitRow(line)
	if len(f) != 9 {
		return false
	}
	start, ok1 := parseTime(f[0])
	end, ok2 := parseTime(f[1])
	n, err := strconv.ParseInt(f[7], 10, 64)
	if !ok1 || !ok2 || err != nil {
		return false
	}
	old := &OldHeader{Start: start, End: end}
	old.Compression, _ = strconv.Atoi(f[2])
	old.RecordSize, _ = strconv.ParseInt(f[3], 10, 64)
	old.BatchSize, _ = strconv.ParseInt(f[4], 10, 64)
	if b := inBytes(f[5]); b != nil {
		old.Bytes = *b
	}
	rate, _ := number(f[8])
	r.out.Old = old
	r.out.Total = &Total{At: end, Records: n, Rate: rate, Throughput: inBytes(f[6])}
	return true
}

// Result is what was read so far. It shares memory with the reader.
func (r *ProducerReader) Result() *Producer { return &r.out }
