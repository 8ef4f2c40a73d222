package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"krig/bench/loadgen"
)

// write stores each worker's intervals as it sent them (.jsonl) and its
// histograms as an HdrHistogram log (.hlog), below the load's directory.
func (c *conductor) write() error {
	for _, w := range c.workers {
		if len(w.ticks) == 0 {
			continue
		}
		lines, err := intervalLines(w.ticks)
		if err == nil {
			err = c.s.run.WriteFile(lines, c.l.dir, w.host+".jsonl")
		}
		if err != nil {
			return err
		}
		log, err := histogramLog(w.ticks)
		if err != nil { // what cannot be read is in the .jsonl and makes the repeat invalid
			continue
		}
		if err := c.s.run.WriteFile(log, c.l.dir, w.host+".hlog"); err != nil {
			return err
		}
	}
	return nil
}

// intervalLines is one JSON value a line, as the worker sent it.
func intervalLines(ticks []loadgen.Interval) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for _, tick := range ticks {
		if err := enc.Encode(tick); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// histogramLog is one line for each histogram of each interval, tagged with
// its name. Values are ns; the log's own times are seconds on the worker's clock.
func histogramLog(ticks []loadgen.Interval) ([]byte, error) {
	var out bytes.Buffer
	base := float64(ticks[0].From) / 1e9
	fmt.Fprintf(&out, "#[Histogram log format version %s]\n#[StartTime: %.3f (seconds since epoch)]\n", hdrhistogram.HISTOGRAM_LOG_FORMAT_VERSION, base)
	out.WriteString(`"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"` + "\n")
	for _, tick := range ticks {
		for _, name := range slices.Sorted(maps.Keys(tick.Histograms)) {
			text := tick.Histograms[name]
			h, err := hdrhistogram.Decode([]byte(text))
			if err != nil {
				return nil, fmt.Errorf("histogram %s: %w", name, err)
			}
			fmt.Fprintf(&out, "Tag=%s,%.3f,%.3f,%.3f,%s\n", name,
				float64(tick.From)/1e9-base, float64(tick.To-tick.From)/1e9, float64(h.Max())/1e6, text)
		}
	}
	return out.Bytes(), nil
}
