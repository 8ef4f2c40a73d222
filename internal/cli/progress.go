package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"krig/internal/rundir"
)

// quietTime is how often present throughput is printed where no line can be redrawn.
const quietTime = 10 * time.Second

// progress shows a run's events. On a terminal it keeps one status line below
// the permanent lines (what is happening, how much remains, the present
// throughput); elsewhere it prints plain dated lines. Its methods may be
// called from several goroutines.
type progress struct {
	out   io.Writer
	width func() int // columns of the terminal; nil where there is none
	now   func() time.Time

	mu         sync.Mutex
	what       string    // what is happening; "" when nothing is
	since      time.Time // since when
	left       int       // repeats that remain
	total      int
	throughput float64
	drawn      bool      // the status line stands on the terminal
	printed    time.Time // the last line about throughput alone
	stop       chan struct{}
}

// newProgress shows progress on w.
func newProgress(w io.Writer) *progress {
	p := &progress{out: w, now: time.Now}
	if f, ok := w.(*os.File); ok && terminal(f) {
		p.width = func() int {
			columns, _, err := term.GetSize(int(f.Fd()))
			if err != nil || columns <= 0 {
				return 80
			}
			return columns
		}
	}
	return p
}

// event takes one event of a run.
func (p *progress) event(e rundir.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin()
	if e.CellsTotal > 0 {
		p.total, p.left = e.CellsTotal, e.CellsTotal-e.CellsDone
	}
	if e.Host == "" {
		p.throughput = e.Throughput
	}
	if e.Message == "" {
		p.sample(e)
		return
	}
	text := phrase(e)
	if text != p.what {
		p.what, p.since = text, p.now()
	}
	// A line for each host would drown the milestones: on a terminal these
	// only pass through the status line.
	if p.width == nil || e.Host == "" {
		p.print(text)
		return
	}
	p.draw()
}

// phrase is an event as text.
func phrase(e rundir.Event) string {
	text := e.Message
	if e.Host != "" {
		text = e.Host + ": " + text
	}
	if e.Stage != "" {
		text = e.Stage + ": " + text
	}
	return text
}

// sample takes an event that tells figures alone.
func (p *progress) sample(e rundir.Event) {
	if p.width != nil {
		p.draw()
		return
	}
	if e.Throughput > 0 && p.now().Sub(p.printed) >= quietTime {
		p.printed = p.now()
		p.print(strings.Join(p.figures(), ", "))
	}
}

// line prints a permanent line that stands as it is.
func (p *progress) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	fmt.Fprintln(p.out, text)
	p.draw()
}

// print prints a permanent line with its time.
func (p *progress) print(text string) {
	p.wipe()
	if p.width == nil {
		fmt.Fprintf(p.out, "%s %s\n", p.now().UTC().Format(time.RFC3339), text)
		return
	}
	fmt.Fprintf(p.out, "%s %s\n", p.now().Format(time.TimeOnly), text)
	p.draw()
}

// figures are how much remains and the present throughput.
func (p *progress) figures() []string {
	var out []string
	if p.total > 0 {
		out = append(out, fmt.Sprintf("%d of %d repeats to go", p.left, p.total))
	}
	if p.throughput > 0 {
		out = append(out, megabytes(p.throughput))
	}
	return out
}

// draw draws the status line anew, cut to the terminal's width.
func (p *progress) draw() {
	if p.width == nil || p.what == "" {
		return
	}
	parts := append(p.figures(), fmt.Sprintf("%s (%s)", p.what, p.now().Sub(p.since).Round(time.Second)))
	fmt.Fprint(p.out, "\r\x1b[2K", cut(strings.Join(parts, " | "), p.width()-1))
	p.drawn = true
}

// wipe takes the status line off the terminal.
func (p *progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[2K")
		p.drawn = false
	}
}

// begin starts the clock that redraws the time a step has taken.
func (p *progress) begin() {
	if p.width == nil || p.stop != nil {
		return
	}
	p.stop = make(chan struct{})
	go func(stop <-chan struct{}) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				p.mu.Lock()
				p.draw()
				p.mu.Unlock()
			}
		}
	}(p.stop)
}

// close takes the status line away; what is printed next stands below the
// permanent lines. It may be called again.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	p.what = ""
	if p.stop != nil {
		close(p.stop)
		p.stop = nil
	}
}

// cut shortens a line to a number of columns, the last of which then shows that it was cut.
func cut(line string, columns int) string {
	if columns < 1 || utf8.RuneCountInString(line) <= columns {
		return line
	}
	return string([]rune(line)[:columns-1]) + "…"
}

// megabytes is a throughput in the unit that the reports use.
func megabytes(bytesPerSecond float64) string {
	return fmt.Sprintf("%.1f MB/s", bytesPerSecond/1e6)
}
