package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"krig/bench/loadgen"
	"krig/internal/agent"
)

// worker is one worker's share of a load and what it said.
type worker struct {
	host string
	spec *loadgen.Spec
	call *agent.Call

	assigned, produced bool
	about              loadgen.AssignedBody // what it said of its settings
	ahead              map[int]int64        // as told at the start: ns that each worker's clock is ahead of this one's
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
		w.assigned = true
		return json.Unmarshal(m.Body, &w.about)
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

func (c *conductor) all(is func(*worker) bool) bool {
	for _, w := range c.workers {
		if !is(w) {
			return false
		}
	}
	return true
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

// stopAll ends the workers' loads early; what they have to say still comes.
func (c *conductor) stopAll() {
	for _, w := range c.workers {
		if w.call != nil && w.err == nil {
			_ = w.call.Cancel() // a broken connection ends the call by itself
		}
	}
}
