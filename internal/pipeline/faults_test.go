//go:build faults

package pipeline_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/internal/pipeline"
	"krig/internal/result"
	"krig/internal/rundir"
)

// oneBroker is an experiment of two repeats, so that what follows a fault is seen too.
const oneBroker = `
version: 1
name: fault
rigs:
  lab:
    provider: lab
    brokers: {count: 1, disk: {size: 6GiB}, memory: 1GiB}
    workers: {count: 2, memory: 1GiB}
kafka: {jvm: {heap: 384MiB}}
bench: {partitions: 4, record_size: 1KiB, rate: max, warmup: 1s, duration: 6s}
repeat: 2
retries: 0
`

// A part that dies in mid-load makes its repeat invalid, with the reason, and
// the next repeat runs on a mended cluster.
func TestFaultInMidLoad(t *testing.T) {
	faults := []struct {
		name   string
		script string // with the container's name as $C
		host   string
		reason string // what the result must name
	}{
		{"worker", "podman kill $C", "w1", "w1"},
		{"broker process", "podman exec $C sh -c \"pkill -9 -f '[k]afka.Kafka.*broker'\"", "b1", "b1"},
		{"broker host", "podman kill $C", "b1", "b1"},
		{"agent", "podman exec $C sh -c \"pkill -9 -f '[k]rig-agent'\"", "w1", "w1"},
		{"sshd", "podman exec $C sh -c \"pkill -9 sshd\"", "w1", "w1"},
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			l := newLab(t)
			out, err := l.run(oneBroker, func(short string) {
				sh(t, strings.ReplaceAll(f.script, "$C", "krig-"+short+"-"+f.host))
			})
			if err != nil {
				t.Fatal(err)
			}
			got := repeats(t, out.Run)
			if len(got) != 2 {
				t.Fatalf("want 2 results, have %d", len(got))
			}
			if got[0].Status != result.Invalid || !strings.Contains(got[0].Reason, f.reason) {
				t.Errorf("repeat 1 is %s (%q), want invalid with a reason that names %q", got[0].Status, got[0].Reason, f.reason)
			}
			if got[1].Status != result.Valid {
				t.Errorf("repeat 2 is %s: %s", got[1].Status, got[1].Reason)
			}
		})
	}
}

// A disk that fills ends the repeat as invalid: disk full.
func TestFaultDiskFills(t *testing.T) {
	l := newLab(t)
	out, err := l.run(oneBroker, func(short string) {
		filled := sh(t, "podman exec krig-"+short+"-b1 sh -c 'cd $(findmnt -rno TARGET | grep ^/var/lib/krig/ | head -1) && n=$(df --output=avail -BM . | tail -1 | tr -dc 0-9) && fallocate -l $((n*97/100))M filler; df --output=pcent . | tail -1 | tr -dc 0-9'")
		if percent, err := strconv.Atoi(strings.TrimSpace(filled)); err != nil || percent < 95 {
			t.Errorf("the disk was not filled: %s", filled)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := repeats(t, out.Run)[0]; r.Status != result.Invalid || !strings.Contains(r.Reason, "disk full") {
		t.Errorf("repeat 1 is %s (%q), want invalid: disk full", r.Status, r.Reason)
	}
}

// krig killed at any instant: down, or gc without the run directory, leaves nothing.
func TestFaultKilledAtAnyInstant(t *testing.T) {
	for i, after := range []time.Duration{300 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
		7 * time.Second, 12 * time.Second, 20 * time.Second, 30 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			l := newLab(t)
			l.startAndKill(oneBroker, after)
			dirs, err := filepath.Glob(filepath.Join(l.runs, "*"))
			if err != nil {
				t.Fatal(err)
			}
			if len(dirs) == 0 {
				return // killed before anything was begun
			}
			short := l.short()
			if i%2 == 0 {
				err = pipeline.Down(t.Context(), dirs[0], func(rundir.Event) {})
			} else {
				err = gcWithout(t, dirs[0])
			}
			if err != nil {
				t.Error(err)
			}
			if left := machine(t, short); left != "" {
				t.Errorf("krig left\n%s", left)
			}
		})
	}
}

// startAndKill runs an experiment in a process of its own and kills it with SIGKILL.
func (l *lab) startAndKill(text string, after time.Duration) {
	l.t.Helper()
	cmd := l.child(text)
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // killed, or done before: both are fine
}

// gcWithout removes the run directory, then what a dead owner left.
func gcWithout(t *testing.T, dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	found, err := infra.Find(t.Context(), infra.Label{Scope: os.Getenv("KRIG_SCOPE")})
	if err != nil {
		return err
	}
	for _, f := range found {
		if !f.May {
			return fmt.Errorf("gc may not remove %+v of a dead krig", f)
		}
	}
	return infra.Remove(t.Context(), found)
}
