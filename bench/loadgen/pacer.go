package loadgen

import (
	"context"
	"math"
	"time"
)

const (
	// grain is the least time between two wakings of a pacer. What falls due
	// meanwhile is sent at the next: a waking for each record would cost a
	// whole processor at the rates that matter.
	grain = int64(200 * time.Microsecond)
	// longest bounds one sleep, so that a cancelled load ends soon.
	longest = int64(50 * time.Millisecond)
	// burst is how many records one producer sends before the pacer looks at
	// the clock and at its other producers again.
	burst = 32
	// pacerRate is how many records a second one pacer is given: a fraction of
	// what it could send, so that it sleeps most of the time.
	pacerRate = 100_000
)

// intended is when the producer's m-th record is due: the producers take the
// load's records in turn, so the m-th of this one is record m*P + index of all.
func (p *producer) intended(m int64) int64 {
	k := float64(m)*float64(p.load.spec.ProducersInAll) + float64(p.spec.Index)
	return p.load.window.start + int64(k*1e9/p.load.spec.Rate)
}

// before is how many of the producer's records are due before a moment.
func (p *producer) before(at int64) int64 {
	k := float64(at-p.load.window.start) / 1e9 * p.load.spec.Rate
	m := int64(math.Ceil((k - float64(p.spec.Index)) / float64(p.load.spec.ProducersInAll)))
	m = max(m, 0)
	for m > 0 && p.intended(m-1) >= at {
		m--
	}
	for p.intended(m) < at {
		m++
	}
	return m
}

// schedule fixes which records the producer sends, at a rate.
func (p *producer) schedule() {
	p.plan.first = p.before(p.load.window.begin)
	if p.load.spec.ByRecords {
		p.plan.total = p.plan.first + p.spec.Records
	} else {
		p.plan.total = p.before(p.load.window.end.Load())
	}
}

// A pacer wakes when records fall due and sends them. It never waits for a
// client, so that its lateness is its own.
type pacer struct {
	clock     clock
	producers []*producer
	sleep     sleeper
}

// run sends until every record is sent, the window has ended, or ctx ends.
func (p *pacer) run(ctx context.Context, end int64) {
	for ctx.Err() == nil {
		now := p.clock.now()
		for _, pr := range p.producers {
			pr.wake(now)
		}
		more, next := false, far
		for _, pr := range p.producers {
			more = pr.sendDue(now) || more
			next = min(next, pr.next(now))
		}
		if next == far || now >= end && !more {
			return // what a full buffer still holds back at the window's end is not sent
		}
		if !more {
			p.sleep(min(max(next, now+grain), now+longest))
		}
	}
}

// wake takes note of what has fallen due, and how late the pacer is for it.
func (p *producer) wake(now int64) {
	from := p.due
	for p.due < p.plan.total {
		at := p.intended(p.due)
		if at > now {
			break
		}
		if p.due >= p.plan.first {
			p.shard.late.record(now - at)
		}
		p.due++
	}
	if p.due != from {
		p.count.intended.Store(p.due)
		p.count.intendedW.Store(max(p.due-p.plan.first, 0))
	}
}

// sendDue sends some of what is due, and tells whether more could be sent at once.
func (p *producer) sendDue(now int64) bool {
	for range burst {
		if p.sent >= p.due {
			return false
		}
		if !p.fits() {
			p.holdBack()
			return false
		}
		p.send(p.intended(p.sent), p.load.clock.now())
	}
	return p.sent < p.due
}

// holdBack counts the records that wait for room in the client's buffer, each once.
func (p *producer) holdBack() {
	if p.blocked <= p.sent {
		p.count.full.Add(1)
	}
	from := max(p.sent, p.blocked, p.plan.first)
	p.count.blockedW.Add(max(p.due-from, 0))
	p.blocked = max(p.due, p.blocked)
}

// next is when the producer wants to be looked at again; far when it is done.
func (p *producer) next(now int64) int64 {
	switch {
	case p.sent < p.due:
		return now
	case p.due < p.plan.total:
		return p.intended(p.due)
	default:
		return far
	}
}

// flood sends whenever the client's buffer has room, until the window or ctx ends.
func (p *producer) flood(ctx context.Context) {
	var inside int64
	for ctx.Err() == nil {
		now := p.load.clock.now()
		within := p.load.window.holds(now)
		if now >= p.load.window.end.Load() || p.load.spec.ByRecords && inside >= p.spec.Records {
			return
		}
		if !p.fits() {
			p.awaitRoom(ctx)
			continue
		}
		p.send(now, now)
		p.count.intended.Store(p.sent)
		if within {
			inside++
			p.count.intendedW.Store(inside)
		}
	}
}

// awaitRoom waits until an eighth of the client's buffer is free: to wake for
// each record would make batches of one.
func (p *producer) awaitRoom(ctx context.Context) {
	p.count.full.Add(1)
	p.waiting.Store(true)
	if p.buffered.Load() <= p.limit-p.limit/8 && p.waiting.CompareAndSwap(true, false) {
		return
	}
	select {
	case <-p.room:
	case <-ctx.Done():
	}
}
