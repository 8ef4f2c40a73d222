package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"krig/internal/agent"
)

// A ticker sends one [Interval] for each second of load.
type ticker struct {
	load   *load
	caller Caller
	from   int64
	err    error
}

func newTicker(l *load, caller Caller) *ticker {
	return &ticker{load: l, caller: caller, from: l.window.start}
}

// run sends intervals on the start's own seconds until ctx ends.
func (t *ticker) run(ctx context.Context) {
	for t.err == nil {
		next := t.from + int64(time.Second)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(next - t.load.clock.now())):
			t.err = t.send(next)
		}
	}
}

// last sends what came after the last whole second. It may have no length: something may have
// been recorded at that very moment.
func (t *ticker) last() error {
	if t.err != nil {
		return t.err
	}
	return t.send(max(t.load.clock.now(), t.from))
}

// send takes what was counted since the interval before. It is taken a moment
// after the interval's end; when that moment was long, the end is moved.
func (t *ticker) send(to int64) error {
	if now := t.load.clock.now(); now-to > int64(50*time.Millisecond) {
		to = now
	}
	i := Interval{
		From: t.load.clock.wall(t.from), To: t.load.clock.wall(to),
		Counters: t.load.counters(), Histograms: t.load.drain(),
	}
	t.from = to
	return t.caller.Emit(Tick, i)
}

func (l *load) counters() Counters {
	var c Counters
	for _, p := range l.producers {
		p.add(&c)
	}
	for _, s := range l.shards {
		for _, r := range []*recorder{s.produce, s.outside} {
			c.Clipped += r.clipped.Load()
		}
	}
	for _, r := range l.consumers {
		r.add(&c)
	}
	return c
}

// drain takes every recorder's news.
func (l *load) drain() map[string]string {
	sums := map[string]*hdrhistogram.Histogram{}
	take := func(name string, r *recorder) {
		if r == nil {
			return
		}
		if sums[name] == nil {
			sums[name] = NewHistogram()
		}
		r.drain(sums[name])
	}
	for _, s := range l.shards {
		take(Produce, s.produce)
		take(ProduceOutside, s.outside)
		take(Publish, s.publish)
		take(Delay, s.delay)
		take(Late, s.late)
	}
	for _, c := range l.consumers {
		for worker := range c.endToEnd {
			take(EndToEnd+strconv.Itoa(worker), c.endToEnd[worker].Load())
		}
	}
	out := map[string]string{}
	for name, h := range sums {
		if text := encode(h); text != "" {
			out[name] = text
		}
	}
	return out
}

func (l *load) summary(before, after used) Summary {
	s := Summary{
		Counters: l.counters(),
		Started:  l.clock.wall(l.window.start),
		CPU:      after.cpu - before.cpu,
		GCPause:  after.pause - before.pause,
		Errors:   l.errors.all(),
	}
	s.GCLongest = longestPause(after.collections - before.collections)
	end := min(l.window.end.Load(), l.clock.now())
	s.Window = [2]int64{l.clock.wall(l.window.begin), l.clock.wall(end)}
	var acked int64
	for _, p := range l.producers {
		acked += p.count.ackedOf.Load()
	}
	for _, c := range l.consumers {
		first, last := c.firstRead.Load(), c.lastRead.Load()
		if last == 0 {
			continue
		}
		if first := l.clock.wall(first); s.FirstRead == 0 || first < s.FirstRead {
			s.FirstRead = first
		}
		s.LastRead = max(s.LastRead, l.clock.wall(last))
	}
	s.Censored = max(s.Counters.IntendedW-acked-s.Counters.FailedW, 0)
	return s
}

// used is what this process has used so far.
type used struct {
	cpu, pause  float64 // seconds
	collections int64
}

func usage() used {
	var u used
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) == nil {
		u.cpu = time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
	}
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	u.pause, u.collections = gc.PauseTotal.Seconds(), gc.NumGC
	return u
}

// longestPause is the longest of the last n collections' pauses; the runtime remembers 256.
func longestPause(n int64) float64 {
	var gc debug.GCStats
	debug.ReadGCStats(&gc)
	var most time.Duration
	for _, p := range gc.Pause[:min(n, int64(len(gc.Pause)))] {
		most = max(most, p)
	}
	return most.Seconds()
}

func unmarshal(m agent.Message, v any) error {
	if err := json.Unmarshal(m.Body, v); err != nil {
		return fmt.Errorf("message %s: %w", m.Kind, err)
	}
	return nil
}
