package loadgen

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// spec is one worker's load of one topic "t", changed by change.
func spec(cluster *kfake.Cluster, producers int, change func(*Spec)) *Spec {
	s := &Spec{
		Brokers: cluster.ListenAddrs(), Workers: 1, ProducersInAll: producers,
		RecordSize: 100, Window: 10 * time.Second, Await: 30 * time.Second,
		ProducerSettings: map[string]string{"acks": "1", "linger.ms": "0"},
	}
	for i := range producers {
		s.Producers = append(s.Producers, Producer{Index: i, Topics: []string{"t"}})
	}
	change(s)
	return s
}

func TestScheduleIsExact(t *testing.T) {
	// 7 producers share 1000 records/s: over 10 s exactly 10,000 records, 1,428 or
	// 1,429 each, and every one due at k/1000 s.
	virtual(t, nil, func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
		c := newConductor(t)
		c.producer = true
		if err := run(t.Context(), spec(cluster, 7, func(s *Spec) { s.Rate, s.Warmup = 1000, 2*time.Second }), c, goSleeper, dial); err != nil {
			t.Fatal(err)
		}
		n := c.summary.Counters
		if n.Sent != 12_000 || n.IntendedW != 10_000 || n.Intended != 12_000 || n.AckedW < 9_900 {
			t.Errorf("counters %+v", n)
		}
		if got := c.histogram(Produce).TotalCount(); got != 10_000 {
			t.Errorf("%d latencies, want 10000: the warm-up's records do not belong to the window", got)
		}
		if got := c.histogram(ProduceOutside).TotalCount(); got != 2_000 {
			t.Errorf("%d latencies outside the window, want 2000", got)
		}
		if len(c.ticks) < 12 {
			t.Errorf("%d intervals for 12 s", len(c.ticks))
		}
		for i, tick := range c.ticks[:12] {
			if tick.To-tick.From != int64(time.Second) {
				t.Errorf("interval %d lasts %v", i, time.Duration(tick.To-tick.From))
			}
		}
	})
}

func TestFullBufferIsTheClustersDoing(t *testing.T) {
	virtual(t, always(500*time.Millisecond), func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
		c := newConductor(t)
		c.producer = true
		// 1000 records/s of 100 B into a buffer of 10 records that empties every half second.
		err := run(t.Context(), spec(cluster, 1, func(s *Spec) {
			s.Rate = 1000
			s.ProducerSettings["buffer.memory"] = "1000"
			s.ProducerSettings["max.in.flight.requests.per.connection"] = "1"
		}), c, goSleeper, dial)
		if err != nil {
			t.Fatal(err)
		}
		n := c.summary.Counters
		if n.BlockedW < 9_000 || n.Full == 0 || n.Unsent < 9_000 {
			t.Errorf("counters %+v: nearly all records had to wait for the buffer", n)
		}
		if late := c.histogram(Late); late.TotalCount() != 10_000 || seconds(late.ValueAtQuantile(99)) > 0.001 {
			t.Errorf("the scheduler's lateness: %d values, p99 %v s", late.TotalCount(), seconds(late.ValueAtQuantile(99)))
		}
		if delay := seconds(c.histogram(Delay).Max()); delay < 8 {
			t.Errorf("the longest delay before a send is %v s, want nearly the whole 10", delay)
		}
		if c.summary.Censored != 10_000-c.histogram(Produce).TotalCount() {
			t.Errorf("censored %d and acknowledged %d of 10000: %+v", c.summary.Censored, c.histogram(Produce).TotalCount(), c.summary)
		}
	})
}

func TestCeiling(t *testing.T) {
	virtual(t, always(100*time.Millisecond), func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
		c := newConductor(t)
		c.producer = true
		err := run(t.Context(), spec(cluster, 2, func(s *Spec) {
			s.ByRecords, s.Window = true, 0
			s.Producers[0].Records, s.Producers[1].Records = 501, 500
			s.ProducerSettings["buffer.memory"] = "10000"
		}), c, goSleeper, dial)
		if err != nil {
			t.Fatal(err)
		}
		n := c.summary.Counters
		if n.Acked != 1001 || n.AckedW != 1001 || n.Full == 0 {
			t.Errorf("counters %+v", n)
		}
		if got := c.histogram(Produce).TotalCount(); got != 1001 {
			t.Errorf("%d latencies, want 1001", got)
		}
		length := time.Duration(c.summary.Window[1] - c.summary.Window[0])
		if length < 500*time.Millisecond || length > 2*time.Second {
			t.Errorf("the window ends with the last acknowledgement: %v", length)
		}
	})
}

func TestEndToEndBetweenTwoClocks(t *testing.T) {
	measure := func(ahead time.Duration) (mean float64, c *conductor) {
		virtual(t, always(20*time.Millisecond), func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
			c = newConductor(t)
			c.producer = true
			c.ahead = map[int]int64{0: int64(ahead)} // as if the producer's clock were ahead
			c.settled = func(n Counters) bool { return n.Acked >= 1000 && n.Consumed == n.Acked }
			err := run(t.Context(), spec(cluster, 1, func(s *Spec) {
				s.Rate = 100
				s.Consumers = []Consumer{{Group: "g", Topics: []string{"t"}}}
			}), c, goSleeper, dial)
			if err != nil {
				t.Fatal(err)
			}
			if n := c.summary.Counters; n.Consumed != 1000 || n.ConsumedW < 950 || n.Bytes != 100_000 {
				t.Errorf("counters %+v", n)
			}
			mean = c.histogram(EndToEnd+"0").Mean() / 1e9
		})
		return mean, c
	}
	right, c := measure(0)
	if right < 0.020 || right > 0.1 || c.summary.Counters.Early != 0 {
		t.Errorf("end to end %v s, %d early; an answer takes 20 ms", right, c.summary.Counters.Early)
	}
	ahead, _ := measure(50 * time.Millisecond)
	near(t, "with the producer's clock 50 ms ahead", ahead, right+0.05, 0.005)
	_, c = measure(-time.Second)
	if n := c.summary.Counters.Early; n < 850 {
		t.Errorf("%d records were read before they were sent, want all but those that fall out of the window", n)
	}
}

func TestRefusedRecordsAreCounted(t *testing.T) {
	virtual(t, nil, func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
		var n atomic.Int64
		cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			if n.Add(1) < 3 {
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.ProduceResponse)
			for _, topic := range req.(*kmsg.ProduceRequest).Topics {
				out := kmsg.NewProduceResponseTopic()
				out.Topic, out.TopicID = topic.Topic, topic.TopicID
				for _, p := range topic.Partitions {
					part := kmsg.NewProduceResponseTopicPartition()
					part.Partition, part.ErrorCode = p.Partition, 10 // MESSAGE_TOO_LARGE
					out.Partitions = append(out.Partitions, part)
				}
				resp.Topics = append(resp.Topics, out)
			}
			return resp, nil, true
		})
		c := newConductor(t)
		c.producer = true
		if err := run(t.Context(), spec(cluster, 1, func(s *Spec) { s.Rate, s.Window = 100, 2*time.Second }), c, goSleeper, dial); err != nil {
			t.Fatal(err)
		}
		got := c.summary.Counters
		if got.FailedW < 150 || got.FailedW+c.histogram(Produce).TotalCount() != 200 || c.summary.Censored != 0 {
			t.Errorf("summary %+v", c.summary)
		}
		if len(c.summary.Errors) == 0 || !strings.Contains(c.summary.Errors[0], "MESSAGE_TOO_LARGE") {
			t.Errorf("errors %v", c.summary.Errors)
		}
	})
}

func TestCancelEndsEarlyAndTellsAll(t *testing.T) {
	virtual(t, nil, func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
		c := newConductor(t)
		c.producer = true
		ctx, cancel := contextAfter(t, 3500*time.Millisecond)
		defer cancel()
		if err := run(ctx, spec(cluster, 1, func(s *Spec) { s.Rate = 100 }), c, goSleeper, dial); err != nil {
			t.Fatal(err)
		}
		if c.summary == nil || c.summary.Counters.Sent < 300 || c.summary.Counters.Sent > 350 {
			t.Errorf("summary %+v", c.summary)
		}
	})
}

func TestOneRecordABatch(t *testing.T) {
	for _, size := range []int{300, 800, 1024, 100_000} {
		virtual(t, nil, func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
			var batches, records atomic.Int64
			cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				for _, topic := range req.(*kmsg.ProduceRequest).Topics {
					for _, p := range topic.Partitions {
						var b kmsg.RecordBatch
						if err := b.ReadFrom(p.Records); err != nil {
							t.Error(err)
						}
						batches.Add(1)
						records.Add(int64(b.NumRecords))
					}
				}
				return nil, nil, false
			})
			c := newConductor(t)
			c.producer = true
			err := run(t.Context(), spec(cluster, 1, func(s *Spec) {
				s.RecordSize, s.ByRecords, s.Window = size, true, 0
				s.Producers[0].Records = 50
				s.ProducerSettings = map[string]string{"acks": "1", "batch.size": "100", "linger.ms": "100"}
			}), c, goSleeper, dial)
			if err != nil {
				t.Fatal(err)
			}
			if records.Load() != 51 || batches.Load() != 51 {
				t.Errorf("records of %d bytes with batch.size=100: %d records in %d batches, want 51 in 51", size, records.Load(), batches.Load())
			}
		})
	}
}

func TestRecorderIsTheHistogram(t *testing.T) {
	r, want := newRecorder(), NewHistogram()
	for ns := int64(1000); ns < Highest; ns += 1 + ns/97 {
		r.record(ns)
		if err := want.RecordValue(ns); err != nil {
			t.Fatal(err)
		}
	}
	got := NewHistogram()
	r.drain(got)
	if !got.Equals(want) {
		t.Error("the recorder's counts are not the histogram's")
	}
	r.record(1)
	r.record(2 * Highest)
	if n := r.clipped.Load(); n != 2 {
		t.Errorf("%d values clipped, want 2", n)
	}
	again := NewHistogram()
	r.drain(again)
	if again.TotalCount() != 2 {
		t.Errorf("the second drain has %d values, want the 2 new ones", again.TotalCount())
	}
}

func FuzzIndex(f *testing.F) {
	for _, ns := range []int64{0, 1, 511, 512, 1 << 20, 1<<20 - 1, Highest} {
		f.Add(ns)
	}
	f.Fuzz(func(t *testing.T, ns int64) {
		if ns < 0 || ns > Highest {
			t.Skip()
		}
		i := index(ns)
		low := lowestAt(i)
		if low > ns || index(low) != i || float64(ns-low) > float64(ns)/1000+512 {
			t.Errorf("%d ns is in place %d, which begins at %d", ns, i, low)
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add([]byte("01234567"), 3, int64(1_800_000_000_000_000))
	f.Fuzz(func(t *testing.T, value []byte, worker int, micros int64) {
		if worker < 0 || worker >= MaxWorkers || micros < 0 || micros >= 1<<timeBits {
			t.Skip()
		}
		putHeader(value, worker, micros)
		w, m, ok := header(value)
		if ok != (len(value) >= headerSize) || ok && (w != worker || m != micros) {
			t.Errorf("wrote %d %d, read %d %d %v", worker, micros, w, m, ok)
		}
	})
}

func TestValuesDiffer(t *testing.T) {
	s := newSlots(64, 16, 1, func(*slot) func(*kgo.Record, error) { return func(*kgo.Record, error) {} })
	a, b := s.take(), s.take()
	if slices.Equal(a.rec.Value, b.rec.Value) || slices.Equal(a.rec.Value, make([]byte, 64)) {
		t.Error("values are equal or empty")
	}
	s.give(a)
	if s.take() != a {
		t.Error("a slot that was given back is not used again")
	}
	for range 100 {
		s.give(&slot{}) // beyond the ring they are dropped
	}
}
