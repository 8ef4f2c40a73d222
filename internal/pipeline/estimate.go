package pipeline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"krig/internal/experiment"
)

// Estimate is how long a plan will take.
type Estimate struct {
	Total  time.Duration
	Rough  bool            // this machine has not run all of these stages yet
	Visits []time.Duration // one for each visit, its transition included
}

// Stages whose length is remembered, and what is taken for it until this
// machine has run them: seconds on a small machine.
var firstGuess = map[string]float64{
	"infra":    5,
	"prepare":  10,
	"cluster":  20,
	"resize":   12,
	"prime":    5,
	"around":   8, // topics, agents, settling: a repeat without its load
	"teardown": 5,
}

// EstimateOf says how long a plan will take, from what its stages took on this
// machine before.
func EstimateOf(p *experiment.Plan) Estimate {
	past, err := readPast()
	if err != nil {
		past = map[string][]float64{} // a lost memory makes the estimate rough, nothing more
	}
	e := Estimate{}
	took := func(stage string) time.Duration {
		seconds := firstGuess[stage]
		if known := past[stage]; len(known) > 0 {
			seconds = median(known)
		} else {
			e.Rough = true
		}
		return time.Duration(seconds * float64(time.Second))
	}
	var last *experiment.Cell
	for _, v := range p.Visits {
		cell := p.Cells[v.Cell]
		d := took("around") + loadTime(cell)
		for _, stage := range stagesBetween(last, cell) {
			d += took(stage)
		}
		e.Visits = append(e.Visits, d)
		e.Total += d
		last = cell
	}
	e.Total += took("teardown")
	return e
}

// stagesBetween are the stages that a visit of b needs where a was measured last.
func stagesBetween(a, b *experiment.Cell) []string {
	all := []string{"infra", "prepare", "cluster", "prime"}
	if a == nil || a.RigName != b.RigName {
		return all
	}
	switch t := experiment.Between(a, b); {
	case t.Infra, t.Prepare, t.Cluster:
		return all
	case t.Resize:
		return []string{"infra", "prepare", "resize", "prime"}
	}
	return nil
}

// loadTime is how long a cell's load should last where each broker writes what
// its disk and link allow, at most 50 MiB/s.
func loadTime(c *experiment.Cell) time.Duration {
	perBroker := int64(50 << 20)
	if w := int64(c.Rig.Brokers.Disk.Write); w > 0 {
		perBroker = min(perBroker, w)
	}
	if r := int64(c.Rig.Brokers.Network.Rate); r > 0 {
		perBroker = min(perBroker, r/8)
	}
	return c.LoadTime(float64(perBroker) * float64(c.BrokerCount()))
}

// stopwatch measures stages; save adds them to what this machine remembers.
type stopwatch struct{ took map[string][]float64 }

func newStopwatch() *stopwatch { return &stopwatch{took: map[string][]float64{}} }

// start begins a stage and returns what ends it.
func (s *stopwatch) start(stage string) (end func()) {
	begun := time.Now()
	return func() { s.took[stage] = append(s.took[stage], time.Since(begun).Seconds()) }
}

// add records a stage's seconds.
func (s *stopwatch) add(stage string, seconds float64) {
	s.took[stage] = append(s.took[stage], seconds)
}

// remembered is how many lengths of a stage this machine keeps.
const remembered = 20

// save adds the stages to this machine's memory of them.
func (s *stopwatch) save() error {
	past, err := readPast()
	if err != nil {
		return err
	}
	for stage, took := range s.took {
		all := append(past[stage], took...)
		past[stage] = all[max(0, len(all)-remembered):]
	}
	path, err := pastFile()
	if err != nil {
		return err
	}
	data, err := json.Marshal(past)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func pastFile() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "krig", "stages.json"), err
}

func readPast() (map[string][]float64, error) {
	past := map[string][]float64{}
	path, err := pastFile()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return past, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &past)
	}
	return past, err
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}
