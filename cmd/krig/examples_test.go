//go:build examples

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"krig/internal/result"
)

// Every example runs as its user runs it, and leaves nothing.
func TestExamplesRun(t *testing.T) {
	needLab(t)
	agents := buildAgents(t)
	for _, file := range examples(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			mine := scope()
			t.Cleanup(func() { nothingStands(t, mine) })
			runs := t.TempDir()
			cmd := exec.Command("krig", "run", file, "--runs", runs)
			cmd.Env = append(os.Environ(), "KRIG_SCOPE="+mine, "KRIG_AGENT_DIR="+agents)
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatal(err)
			}
			looksRight(t, results(t, runs))
		})
	}
}

// results reads the results of the one run below a directory.
func results(t *testing.T, runs string) result.Run {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(runs, "*", "result.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("results: %q, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var r result.Run
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(filepath.Dir(files[0]), "report.html"))
	if err != nil || !strings.Contains(string(page), "<svg") {
		t.Errorf("report.html has no picture: %v", err)
	}
	return r
}

// looksRight asserts what must come out on any machine: every repeat is valid,
// and where a throttled disk is the limit, a better disk and more brokers help.
func looksRight(t *testing.T, r result.Run) {
	t.Helper()
	throughput := map[[2]string]float64{} // by brokers and disk profile
	for _, c := range r.Cells {
		for _, rep := range c.Repeats {
			if rep.Status != result.Valid {
				t.Errorf("%s, repeat %d, is %s: %s", c.ID, rep.Repeat, rep.Status, rep.Reason)
			}
		}
		if s := c.Summary["produce.throughput"]; s.Median != nil {
			throughput[[2]string{axis(c, "brokers.count"), axis(c, "disk.profile")}] = *s.Median
		}
	}
	for _, disk := range []string{"ssd", "hdd"} {
		one, two := throughput[[2]string{"1", disk}], throughput[[2]string{"2", disk}]
		if one > 0 && two > 0 && two < 1.4*one {
			t.Errorf("%s: 1 broker has %.0f B/s, 2 have %.0f", disk, one, two)
		}
	}
	const profiles = 30.0 / 12
	ssd, hdd := throughput[[2]string{"1", "ssd"}], throughput[[2]string{"1", "hdd"}]
	if ssd > 0 && hdd > 0 && (ssd/hdd < 0.75*profiles || ssd/hdd > 1.25*profiles) {
		t.Errorf("1 broker: ssd has %.0f B/s, hdd %.0f; the profiles write 30 and 12 MiB/s", ssd, hdd)
	}
}

// axis is a cell's value of the axis whose path ends so.
func axis(c result.Cell, path string) string {
	for p, v := range c.Axes {
		if strings.HasSuffix(p, path) {
			return v
		}
	}
	return ""
}
