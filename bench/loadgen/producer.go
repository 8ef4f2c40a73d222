package loadgen

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer is one client with its place in the schedule. Its sender (a
// pacer, or at a ceiling a goroutine of its own) and the client's one goroutine for
// promises share it; what both touch is atomic.
type producer struct {
	spec   Producer
	load   *load
	client *kgo.Client
	slots  *slots
	limit  int64 // buffer.memory: bytes that may be with the client
	shard  *shard

	// The sender's alone.
	plan    plan
	due     int64 // records that the scheduler has woken for
	sent    int64
	blocked int64 // records below this were counted as held back

	buffered atomic.Int64
	waiting  atomic.Bool
	room     chan struct{}
	count    counts
}

// A plan is which of a producer's records lie where, at a rate.
type plan struct {
	first int64 // the first record intended inside the window
	total int64 // all records
}

// counts are a producer's part of [Counters].
type counts struct {
	sent, intended, intendedW, acked, ackedW, failed, failedW, blockedW, full atomic.Int64

	ackedOf atomic.Int64 // acknowledged of those intended inside the window
	lastAck atomic.Int64
}

// A shard is the recorders that a few producers share.
type shard struct {
	produce, outside     *recorder
	publish, delay, late *recorder // nil at a ceiling
}

func newShard(open bool) *shard {
	s := &shard{produce: newRecorder(), outside: newRecorder()}
	if open {
		s.publish, s.delay, s.late = newRecorder(), newRecorder(), newRecorder()
	}
	return s
}

func newProducer(l *load, p Producer, client *kgo.Client, limit int64, s *shard) *producer {
	out := &producer{spec: p, load: l, client: client, limit: limit, shard: s, room: make(chan struct{}, 1)}
	keep := int(limit/int64(l.spec.RecordSize)) + 1
	out.slots = newSlots(l.spec.RecordSize, keep, uint64(p.Index)+1, func(s *slot) func(*kgo.Record, error) {
		return func(_ *kgo.Record, err error) { out.done(s, err) }
	})
	return out
}

// fits tells whether the client's buffer has room for one more record. A record larger
// than the whole buffer goes alone.
func (p *producer) fits() bool {
	have := p.buffered.Load()
	return have == 0 || have+int64(p.load.spec.RecordSize) <= p.limit
}

// send hands the next record to the client; it never blocks, for the client's own limits are
// beyond ours.
func (p *producer) send(intended, now int64) {
	s := p.slots.take()
	s.intended, s.called = intended, now
	s.inside = p.load.window.holds(intended)
	s.rec.Topic = p.spec.Topics[p.sent%int64(len(p.spec.Topics))]
	s.rec.Timestamp = p.load.clock.time(now)
	putHeader(s.rec.Value, p.load.spec.Worker, p.load.clock.wall(intended)/1000)
	p.sent++
	p.count.sent.Store(p.sent)
	p.buffered.Add(int64(p.load.spec.RecordSize))
	p.client.Produce(context.Background(), &s.rec, s.promise) // what is under way outlives a cancellation
}

// done is called by the client for each record, one at a time.
func (p *producer) done(s *slot, err error) {
	now := p.load.clock.now()
	switch {
	case err == nil:
		p.acknowledged(s, now)
	case p.load.closing.Load():
		// Neither acknowledged nor refused when the waiting ended: censored.
	default:
		p.count.failed.Add(1)
		if s.inside {
			p.count.failedW.Add(1)
		}
		p.load.errors.add(err)
	}
	p.slots.give(s)
	left := p.buffered.Add(-int64(p.load.spec.RecordSize))
	if p.waiting.Load() && left <= p.limit-p.limit/8 && p.waiting.CompareAndSwap(true, false) {
		p.room <- struct{}{} // its one place is free: waiting was true
	}
}

func (p *producer) acknowledged(s *slot, now int64) {
	p.count.acked.Add(1)
	p.count.lastAck.Store(now)
	if p.load.window.holds(now) {
		p.count.ackedW.Add(1)
	}
	if !s.inside {
		p.shard.outside.record(now - s.intended)
		return
	}
	p.count.ackedOf.Add(1)
	p.shard.produce.record(now - s.intended)
	if p.shard.publish != nil {
		p.shard.publish.record(now - s.called)
		p.shard.delay.record(s.called - s.intended)
	}
}

// add gives the producer's counters to c.
func (p *producer) add(c *Counters) {
	sent, intended := p.count.sent.Load(), p.count.intended.Load()
	c.Sent += sent
	c.Intended += intended
	c.Unsent += max(intended-sent, 0)
	c.IntendedW += p.count.intendedW.Load()
	c.Acked += p.count.acked.Load()
	c.AckedW += p.count.ackedW.Load()
	c.Failed += p.count.failed.Load()
	c.FailedW += p.count.failedW.Load()
	c.BlockedW += p.count.blockedW.Load()
	c.Full += p.count.full.Load()
}

// errorList keeps the first few different errors.
type errorList struct {
	mu   sync.Mutex
	list []string
}

func (e *errorList) add(err error) {
	if errors.Is(err, kgo.ErrClientClosed) {
		return
	}
	text := err.Error()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, have := range e.list {
		if have == text {
			return
		}
	}
	if len(e.list) < 8 {
		e.list = append(e.list, text)
	}
}

func (e *errorList) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string{}, e.list...)
}
