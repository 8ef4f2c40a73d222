package cli

import (
	"strings"
	"testing"
	"time"

	"krig/internal/rundir"
)

// screen plays what was written to a terminal and returns its lines.
func screen(written string) []string {
	lines := []string{""}
	for written != "" {
		last := len(lines) - 1
		switch {
		case strings.HasPrefix(written, "\r\x1b[2K"):
			lines[last] = ""
			written = strings.TrimPrefix(written, "\r\x1b[2K")
		case written[0] == '\n':
			lines = append(lines, "")
			written = written[1:]
		default:
			lines[last] += written[:1]
			written = written[1:]
		}
	}
	return lines
}

// clocked is progress whose clock the test moves.
func clocked(out *strings.Builder, width int) (*progress, *time.Time) {
	now := time.Date(2026, 11, 30, 20, 15, 0, 0, time.UTC)
	p := &progress{out: out, now: func() time.Time { return now }}
	if width > 0 {
		p.width = func() int { return width }
		p.stop = make(chan struct{}) // the test redraws
	}
	return p, &now
}

func TestProgressOnATerminal(t *testing.T) {
	var out strings.Builder
	p, now := clocked(&out, 70)
	p.event(rundir.Event{Stage: "infra", Message: "making 4 hosts", CellsTotal: 6})
	p.event(rundir.Event{Stage: "prepare", Host: "b1", Message: "installing java", CellsTotal: 6})
	p.event(rundir.Event{Stage: "bench", Message: "ssd-2, repeat 1 of 3", CellsDone: 2, CellsTotal: 6})
	*now = now.Add(3 * time.Second)
	p.event(rundir.Event{Stage: "bench", Throughput: 31.25e6, CellsDone: 2, CellsTotal: 6})
	want := []string{
		"20:15:00 infra: making 4 hosts",
		"20:15:00 bench: ssd-2, repeat 1 of 3",
		"4 of 6 repeats to go | 31.2 MB/s | bench: ssd-2, repeat 1 of 3 (3s)",
	}
	if got := screen(out.String()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the terminal shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(out.String(), "prepare: b1: installing java") {
		t.Error("the status line never showed what happened on a host")
	}

	p.line("wrote report.html")
	if got := screen(out.String()); got[2] != "wrote report.html" || got[3] != want[2] {
		t.Errorf("after a line the terminal shows\n%s", strings.Join(got, "\n"))
	}
	p.close()
	if got := screen(out.String()); got[len(got)-1] != "" {
		t.Errorf("a closed progress leaves %q", got[len(got)-1])
	}
	p.close() // again, as a failing command does
}

func TestProgressFitsTheTerminal(t *testing.T) {
	for _, width := range []int{2, 20, 41, 300} {
		var out strings.Builder
		p, _ := clocked(&out, width)
		p.event(rundir.Event{Stage: "bench", Host: "b1", Message: strings.Repeat("µ", 100), CellsTotal: 6, CellsDone: 2})
		got := screen(out.String())
		status := []rune(strings.ToValidUTF8(got[len(got)-1], "?"))
		if len(got) != 1 || len(status) >= width {
			t.Errorf("%d columns: %d lines, the last of %d columns", width, len(got), len(status))
		}
	}
}

func TestProgressElsewhere(t *testing.T) {
	var out strings.Builder
	p, now := clocked(&out, 0)
	p.event(rundir.Event{Stage: "prepare", Host: "b1", Message: "installing java"})
	for range 25 {
		*now = now.Add(time.Second)
		p.event(rundir.Event{Stage: "bench", Throughput: 1e6, CellsDone: 1, CellsTotal: 3})
	}
	p.event(rundir.Event{Stage: "teardown", Message: "taking everything down"})
	p.close()
	want := `2026-11-30T20:15:00Z prepare: b1: installing java
2026-11-30T20:15:01Z 2 of 3 repeats to go, 1.0 MB/s
2026-11-30T20:15:11Z 2 of 3 repeats to go, 1.0 MB/s
2026-11-30T20:15:21Z 2 of 3 repeats to go, 1.0 MB/s
2026-11-30T20:15:25Z teardown: taking everything down
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}
