package pipeline_test

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"krig/infra/lab/labtest"
)

// tenHosts is a rig of ten hosts under a light load.
const tenHosts = `
version: 1
name: ten
rigs:
  lab:
    provider: lab
    brokers: {count: 3, disk: {size: 2GiB}, memory: 1GiB}
    workers: {count: 7, memory: 512MiB}
kafka: {jvm: {heap: 384MiB}}
bench: {partitions: 3, record_size: 1KiB, rate: 700, warmup: 1s, duration: 30s}
retries: 0
`

// BenchmarkKrigItself is what krig's own process uses while ten hosts run
// under load: of one core (%), and memory at its most (MB).
func BenchmarkKrigItself(b *testing.B) {
	labtest.Need(b)
	b.Setenv("KRIG_SCOPE", fmt.Sprint("own-cost-", os.Getpid()))
	b.Setenv("KRIG_AGENT_DIR", agents(b))
	for b.Loop() {
		ownCost(b)
	}
}

// ownCost runs ten hosts once and reports what krig used meanwhile.
func ownCost(b *testing.B) {
	l := &lab{t: b, runs: b.TempDir()}
	cmd := l.child(tenHosts)
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var begun time.Time
	var before float64
	reported := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		stage, message, _ := strings.Cut(lines.Text(), " ")
		if strings.HasPrefix(message, "loading") {
			begun, before = time.Now(), cpuSeconds(b, cmd.Process.Pid)
		}
		if stage == "settle" && !begun.IsZero() && !reported {
			reported = true
			b.ReportMetric(100*(cpuSeconds(b, cmd.Process.Pid)-before)/time.Since(begun).Seconds(), "%core")
			b.ReportMetric(peakMemory(b, cmd.Process.Pid)/1e6, "MB")
		}
	}
	if err := cmd.Wait(); err != nil {
		b.Logf("the run ended with %v", err) // its own cost was measured all the same
	}
}

// cpuSeconds is what a process has used: utime and stime of /proc/PID/stat, in hundredths.
func cpuSeconds(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, uerr := strconv.ParseFloat(words[11], 64)
	system, serr := strconv.ParseFloat(words[12], 64)
	if uerr != nil || serr != nil {
		b.Fatalf("/proc/%d/stat: %s", pid, text)
	}
	return (user + system) / 100
}

// peakMemory is a process's VmHWM, in bytes.
func peakMemory(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb * 1024
		}
	}
	b.Fatalf("/proc/%d/status has no VmHWM", pid)
	return 0
}
