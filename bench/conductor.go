package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"krig/bench/loadgen"
	"krig/internal/experiment"
)

const (
	connectLimit = 90 * time.Second // until every client is connected and every consumer has its partitions
	probeLimit   = 60 * time.Second // until every producer's first record is acknowledged and read
	probeAgain   = 3 * time.Second
	partLimit    = 45 * time.Second // until stopped workers have said their last
)

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

// connect waits until all clients are connected.
func (c *conductor) connect(ctx context.Context) bool {
	return c.within(ctx, connectLimit, "not all clients were connected and assigned", func() bool {
		return c.all(func(w *worker) bool { return w.assigned })
	})
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

// begin fixes the start a moment ahead and tells each worker in its own clock's time.
func (c *conductor) begin(ctx context.Context) bool {
	c.counter.base(ctx)
	ahead := 500*time.Millisecond + time.Duration(len(c.workers))*20*time.Millisecond
	c.start = time.Now().UTC().Add(ahead).Truncate(time.Millisecond)
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
	return c.awaitStart(ctx)
}

// awaitStart waits until the load begins and says so, unless it is discarded.
func (c *conductor) awaitStart(ctx context.Context) bool {
	due, cancel := context.WithDeadline(ctx, c.start)
	defer cancel()
	c.until(due, func() bool { return false })
	if c.invalid != "" || ctx.Err() != nil {
		return false
	}
	if !c.l.prime {
		c.s.report("%s", c.loading())
	}
	return true
}

// loading says what load begins: "loading for 12s at the ceiling".
func (c *conductor) loading() string {
	b := c.l.Cell.Bench
	length := fmt.Sprintf("for %v", time.Duration(b.Warmup+b.Duration))
	if b.Records.Set {
		length = fmt.Sprintf("%d records", c.l.Cell.Resolve(b.Records))
	}
	return "loading " + length + " " + atRate(b.Rate)
}

// atRate says how fast a load is asked to be.
func atRate(r experiment.SendRate) string {
	if r.Max {
		return "at the ceiling"
	}
	return fmt.Sprintf("at %v records/s", r.Value)
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
