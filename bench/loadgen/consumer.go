package loadgen

import (
	"context"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A consumer is one member of a group, polled by one goroutine.
type consumer struct {
	spec   Consumer
	load   *load
	client *kgo.Client
	most   int // records a poll; 0 is no limit

	assigned chan struct{} // closed at the first assignment
	started  atomic.Bool   // the load has started: what is read counts
	probes   func([]int)   // called with the producers whose probes were read

	consumed, consumedW, bytes, bytesW, early, firstRead, lastRead atomic.Int64

	endToEnd []atomic.Pointer[recorder] // by producing worker
}

// run reads until ctx ends.
func (c *consumer) run(ctx context.Context) {
	for ctx.Err() == nil {
		var got kgo.Fetches
		if c.most > 0 {
			got = c.client.PollRecords(ctx, c.most)
		} else {
			got = c.client.PollFetches(ctx)
		}
		if got.IsClientClosed() {
			return
		}
		got.EachError(func(_ string, _ int32, err error) {
			if ctx.Err() == nil {
				c.load.errors.add(err)
			}
		})
		c.take(got, c.load.clock.now())
	}
}

// take counts one poll's records as read at now.
func (c *consumer) take(got kgo.Fetches, now int64) {
	var n, bytes int64
	var probes []int
	started := c.started.Load()
	got.EachPartition(func(p kgo.FetchTopicPartition) {
		for _, r := range p.Records {
			worker, micros, ok := header(r.Value)
			switch {
			case ok && micros < probeLimit:
				probes = append(probes, int(micros))
				continue
			case !ok && !started:
				probes = append(probes, unnamed)
				continue
			case ok && started:
				c.measure(worker, micros, now)
			}
			n++
			bytes += int64(len(r.Value))
		}
	})
	if len(probes) > 0 {
		c.probes(probes)
	}
	if n > 0 {
		c.firstRead.CompareAndSwap(0, now)
		c.lastRead.Store(now)
	}
	c.consumed.Add(n)
	c.bytes.Add(bytes)
	// A window that ends by records ends for producers with the last
	// acknowledgement; what is read after it belongs to the load all the same.
	if started && (c.load.window.holds(now) || c.load.spec.ByRecords && now >= c.load.window.begin) {
		c.consumedW.Add(n)
		c.bytesW.Add(bytes)
	}
}

// unnamed is the producer of a probe too small for a header.
const unnamed = -1

// measure records the time from a record's intended send to its reading.
func (c *consumer) measure(worker int, micros, now int64) {
	if worker >= len(c.endToEnd) {
		return // not of this load
	}
	sent := c.load.clock.at(micros*1000 - c.load.ahead[worker])
	if !c.load.window.holds(sent) {
		return
	}
	if now < sent {
		c.early.Add(1)
	}
	r := c.endToEnd[worker].Load()
	if r == nil {
		r = newRecorder()
		c.endToEnd[worker].Store(r)
	}
	r.record(now - sent)
}

// add gives the consumer's counters to sum.
func (c *consumer) add(sum *Counters) {
	sum.Consumed += c.consumed.Load()
	sum.ConsumedW += c.consumedW.Load()
	sum.Bytes += c.bytes.Load()
	sum.BytesW += c.bytesW.Load()
	sum.Early += c.early.Load()
}
