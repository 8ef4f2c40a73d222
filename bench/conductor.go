package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"krig/bench/loadgen"
	"krig/internal/agent"
)

const (
	connectLimit = 90 * time.Second // until every client is connected and every consumer has its partitions
	probeLimit   = 60 * time.Second // until every producer's first record is acknowledged and read
	probeAgain   = 3 * time.Second
	partLimit    = 45 * time.Second // until stopped workers have said their last
)

// worker is one worker's share of a load and what it said.
type worker struct {
	host string
	spec *loadgen.Spec
	call *agent.Call

	assigned, produced bool
	notes              []string
	ahead              map[int]int64 // as told at the start: ns that each worker's clock is ahead of this one's
	ticks              []loadgen.Interval
	latest             loadgen.Counters // the newest of them
	summary            *loadgen.Summary
	err                error // why it ended early
}

// said is one message of a worker; an error is its last.
type said struct {
	from *worker
	agent.Message
	err error
}

// conductor leads the workers of one load through it, in one goroutine.
type conductor struct {
	s       *Session
	l       loadAsk
	size    float64 // bytes of a record's value
	counter *appendCounter

	workers []*worker
	heard   chan said
	alive   int

	acked   map[int]bool // producers whose probe is acknowledged
	read    map[int]bool // producers whose probe was read
	reads   int          // probes read, where they carry no name
	told    int          // seconds of which progress was told
	start   time.Time    // of the load, on this machine's clock
	invalid string       // the first thing that went wrong
}

// run leads the load from the first call to the last message. What went wrong is in invalid.
func (c *conductor) run(ctx context.Context) {
	c.heard = make(chan said, 16)
	c.acked, c.read = map[int]bool{}, map[int]bool{}
	var wg sync.WaitGroup
	defer wg.Wait()
	// The calls outlive ctx: what a cancelled worker still has to say is wanted.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	for _, w := range c.workers {
		if err := c.call(life, w); err != nil {
			c.fail(w, err)
			continue
		}
		c.alive++
		wg.Go(func() { c.listen(life, w) })
	}
	if c.invalid == "" {
		c.lead(ctx)
	}
	if c.invalid != "" {
		c.stopAll()
	}
	c.part()
}

// part hears the workers' last words, a while.
func (c *conductor) part() {
	limit := time.After(partLimit)
	for c.alive > 0 {
		select {
		case m := <-c.heard:
			c.hear(m)
		case <-limit:
			return
		}
	}
}

func (c *conductor) call(ctx context.Context, w *worker) error {
	a := c.s.agents[w.host]
	if a == nil {
		return errors.New("it has no agent")
	}
	call, err := a.Call(ctx, "load", w.spec)
	w.call = call
	return err
}

// listen passes on what a worker says until its end.
func (c *conductor) listen(ctx context.Context, w *worker) {
	for {
		m, err := w.call.Next(ctx)
		select {
		case c.heard <- said{from: w, Message: m, err: err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// lead goes through the steps of a load. It returns early when one fails.
func (c *conductor) lead(ctx context.Context) {
	steps := []func(context.Context) bool{c.connect, c.probe, c.begin, c.finish}
	for _, step := range steps {
		if !step(ctx) {
			if c.invalid == "" && ctx.Err() != nil {
				c.invalid = context.Cause(ctx).Error()
			}
			return
		}
	}
}

// until hears workers until done says so; false when ctx ended or something went wrong.
func (c *conductor) until(ctx context.Context, done func() bool) bool {
	for !done() {
		select {
		case m := <-c.heard:
			c.hear(m)
		case <-ctx.Done():
			return false
		}
		if c.invalid != "" {
			return false
		}
	}
	return true
}

// within is until with a limit, which is longer on slow hosts; what names what was awaited.
func (c *conductor) within(ctx context.Context, limit time.Duration, what string, done func() bool) bool {
	slow := 1.0
	for _, w := range c.workers {
		slow = max(slow, c.s.slowness(w.host))
	}
	limit = time.Duration(float64(limit) * slow).Round(time.Second)
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if c.until(bounded, done) {
		return true
	}
	if c.invalid == "" && ctx.Err() == nil {
		c.invalid = fmt.Sprintf("%s within %v", what, limit)
	}
	return false
}

func (c *conductor) fail(w *worker, err error) {
	w.err = err
	if c.invalid == "" {
		c.invalid = reason(w.host, err)
	}
}

// hear takes one message in.
func (c *conductor) hear(m said) {
	if m.err != nil {
		c.alive--
		if !errors.Is(m.err, io.EOF) || m.from.summary == nil {
			c.fail(m.from, m.err)
		}
		return
	}
	if err := c.take(m); err != nil {
		c.fail(m.from, fmt.Errorf("its message %q: %w", m.Kind, err))
	}
}

func (c *conductor) take(m said) error {
	w := m.from
	switch m.Kind {
	case loadgen.Assigned:
		var b loadgen.AssignedBody
		err := json.Unmarshal(m.Body, &b)
		w.assigned, w.notes = true, b.Notes
		return err
	case loadgen.Probed, loadgen.Read:
		var b loadgen.ProbeBody
		err := json.Unmarshal(m.Body, &b)
		for _, p := range b.Producers {
			if m.Kind == loadgen.Probed {
				c.acked[p] = true
			} else {
				c.read[p] = true
				c.reads++
			}
		}
		return err
	case loadgen.Tick:
		var b loadgen.Interval
		err := json.Unmarshal(m.Body, &b)
		w.ticks, w.latest = append(w.ticks, b), b.Counters
		if len(w.ticks) > c.told {
			c.told = len(w.ticks)
			c.progress()
		}
		return err
	case loadgen.Produced:
		w.produced = true
		return json.Unmarshal(m.Body, &w.latest)
	case loadgen.End:
		w.summary = &loadgen.Summary{}
		return json.Unmarshal(m.Body, w.summary)
	default:
		return errors.New("not understood; build krig and krig-agent from one source")
	}
}

// connect waits until all clients are connected.
func (c *conductor) connect(ctx context.Context) bool {
	return c.within(ctx, connectLimit, "not all clients were connected and assigned", func() bool {
		return c.all(func(w *worker) bool { return w.assigned })
	})
}

func (c *conductor) all(is func(*worker) bool) bool {
	for _, w := range c.workers {
		if !is(w) {
			return false
		}
	}
	return true
}

// probe has one uncounted record of each producer acknowledged, and read where consumers run.
func (c *conductor) probe(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	for {
		c.tell(loadgen.Probe, loadgen.ProbeBody{Producers: c.unread()})
		again, stop := context.WithTimeout(ctx, probeAgain)
		ok := c.until(again, c.probed)
		stop()
		switch {
		case ok:
			return true
		case c.invalid != "":
			return false
		case ctx.Err() != nil:
			c.invalid = fmt.Sprintf("the first records were not all acknowledged and read within %v: %d of %d acknowledged, %d read", probeLimit, len(c.acked), c.producers(), c.reads)
			return false
		}
	}
}

func (c *conductor) producers() int { return c.workers[0].spec.ProducersInAll }

func (c *conductor) consumers() (n int) {
	for _, w := range c.workers {
		n += len(w.spec.Consumers)
	}
	return n
}

func (c *conductor) probed() bool {
	if len(c.acked) < c.producers() {
		return false
	}
	return c.consumers() == 0 || len(c.read) == c.producers() || c.read[-1] && c.reads >= c.producers()
}

// unread are the producers whose probe is wanted again; none means all.
func (c *conductor) unread() []int {
	var out []int
	for i := range c.producers() {
		if c.acked[i] && !c.read[i] {
			out = append(out, i)
		}
	}
	return out
}

// tell sends a message to every worker that still listens.
func (c *conductor) tell(kind string, body any) {
	for _, w := range c.workers {
		if w.err == nil && w.call != nil && w.summary == nil {
			if err := w.call.Send(kind, body); err != nil {
				c.fail(w, err)
			}
		}
	}
}

// begin fixes the start a moment ahead and tells each worker in its own clock's time.
func (c *conductor) begin(ctx context.Context) bool {
	c.counter.base(ctx)
	ahead := 500*time.Millisecond + time.Duration(len(c.workers))*20*time.Millisecond
	c.start = time.Now().Add(ahead).Truncate(time.Millisecond)
	warmup, _ := c.window()
	c.counter.begin(ctx, c.start, warmup)
	for _, w := range c.workers {
		mine, _ := c.s.clocks.ahead(w.host, c.start)
		body := loadgen.StartBody{At: c.start.Add(mine).UnixNano(), Ahead: map[int]int64{}}
		for j, other := range c.workers {
			theirs, _ := c.s.clocks.ahead(other.host, c.start)
			body.Ahead[j] = int64(theirs - mine)
		}
		w.ahead = body.Ahead
		if err := w.call.Send(loadgen.Start, body); err != nil {
			c.fail(w, err)
			return false
		}
	}
	return ctx.Err() == nil
}

// window is the measured part as planned; its length is 0 when records end it.
func (c *conductor) window() (begin, length time.Duration) {
	spec := c.workers[0].spec
	return spec.Warmup, spec.Window
}

// finish waits for producers, then for consumers to catch up, and ends the load.
func (c *conductor) finish(ctx context.Context) bool {
	if !c.until(ctx, func() bool { return c.all(func(w *worker) bool { return w.produced }) }) {
		return false
	}
	c.counter.finish(ctx, c.latest().Sent)
	if c.consumers() > 0 {
		late, cancel := context.WithTimeout(ctx, awaitLimit)
		c.until(late, c.caughtUp)
		cancel()
		if c.invalid != "" || ctx.Err() != nil {
			return false
		}
	}
	c.tell(loadgen.Stop, struct{}{})
	return c.within(ctx, partLimit, "not all workers ended", func() bool {
		return c.all(func(w *worker) bool { return w.summary != nil })
	})
}

// caughtUp tells whether everything that was acknowledged has been read, by the latest ticks.
func (c *conductor) caughtUp() bool {
	sum := c.latest()
	acked := sum.Acked
	if c.counter != nil {
		acked = c.counter.grown()
	}
	return sum.Consumed >= acked
}

// latest are the newest counters of all workers.
func (c *conductor) latest() loadgen.Counters {
	var sum loadgen.Counters
	for _, w := range c.workers {
		sum = plus(sum, w.latest)
	}
	return sum
}

// progress tells the present throughput: the sum of each worker's latest second.
func (c *conductor) progress() {
	now, before := 0.0, 0.0
	for _, w := range c.workers {
		if n := len(w.ticks); n > 0 {
			now += float64(w.ticks[n-1].Counters.Acked)
			if n > 1 {
				before += float64(w.ticks[n-2].Counters.Acked)
			}
		}
	}
	if c.l.progress != nil {
		c.l.progress((now - before) * c.size)
	}
}

// stopAll ends the workers' loads early; what they have to say still comes.
func (c *conductor) stopAll() {
	for _, w := range c.workers {
		if w.call != nil && w.err == nil {
			_ = w.call.Cancel() // a broken connection ends the call by itself
		}
	}
}
