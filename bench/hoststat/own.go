package hoststat

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"krig/internal/result"
)

// Own is one sample that krig-agent takes itself, of what the tools do not see
// or see wrongly in a lab host. A nil field is unknown. It is one line of JSON
// in own.jsonl.
type Own struct {
	At         time.Time `json:"at"`                   // the host's clock, UTC
	CPU        *int64    `json:"cpu,omitempty"`        // processor time used so far, ns: of the host's cgroup, else of all its processors
	Processors float64   `json:"processors,omitempty"` // that CPU is a share of
	Used       *int64    `json:"used,omitempty"`       // B of memory that its cgroup cannot give back
	Limit      *int64    `json:"limit,omitempty"`      // B of memory that its cgroup may use
	Pressure   *int64    `json:"pressure,omitempty"`   // time so far in which some task waited for a processor, µs
	Free       *int64    `json:"free,omitempty"`       // B free on the watched file system
	Size       *int64    `json:"size,omitempty"`       // B of the watched file system
}

// ReadOwn reads krig-agent's own samples: cpu.busy, cpu.pressure,
// memory.available and disk.free. processors, where above 0, is what CPU time
// is a share of, instead of what the samples say.
func ReadOwn(r io.Reader, processors float64) (*Reading, error) {
	t := newTable(0)
	out := &Reading{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, textMax)
	var last *Own
	broken := 0
	for lines.Scan() {
		var o Own
		if json.Unmarshal(lines.Bytes(), &o) != nil || o.At.IsZero() {
			broken++
			continue
		}
		if last != nil && !o.At.After(last.At) {
			continue
		}
		if last != nil {
			out.Samples++
			ownRow(t, *last, o, processors)
		}
		last = &o
	}
	if broken > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("%d lines cannot be read", broken))
	}
	return finish(t, out, false, lines.Err())
}

// ownRow adds what happened between two samples.
func ownRow(t *table, a, b Own, processors float64) {
	at, length := seconds(b.At), b.At.Sub(a.At).Seconds()
	if processors <= 0 {
		processors = b.Processors
	}
	if used := rate(a.CPU, b.CPU, length); used != nil && processors > 0 {
		t.add("cpu.busy", "", result.Ratio, at, length, ptr(*used/1e9/processors))
	}
	if waited := rate(a.Pressure, b.Pressure, length); waited != nil {
		t.add("cpu.pressure", "", result.Ratio, at, length, ptr(*waited/1e6))
	}
	if b.Used != nil && b.Limit != nil {
		t.add("memory.available", "", result.Bytes, at, length, ptr(float64(max(0, *b.Limit-*b.Used))))
	}
	if b.Free != nil {
		t.add("disk.free", "", result.Bytes, at, length, ptr(float64(*b.Free)))
	}
}

// rate is a counter's growth per second; nil when it is unknown or went back.
func rate(a, b *int64, length float64) *float64 {
	if a == nil || b == nil || *b < *a || length <= 0 {
		return nil
	}
	return ptr(float64(*b-*a) / length)
}
