package loadgen

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"krig/internal/agent"
)

// conductor is the caller's side of loads: it leads them through probes, start and
// stop, and keeps what they send. A message out of order fails the test.
type conductor struct {
	t     testing.TB
	in    chan agent.Message
	ahead map[int]int64

	mu       sync.Mutex
	notes    []string
	probed   int
	read     map[int]int
	ticks    []Interval
	summary  *Summary
	delay    time.Duration // from probes to start
	producer bool
	settled  func(c Counters) bool // consumers may stop
}

func newConductor(t testing.TB) *conductor {
	return &conductor{t: t, in: make(chan agent.Message, 16), read: map[int]int{}, delay: 100 * time.Millisecond}
}

func (c *conductor) push(kind string, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		c.t.Error(err)
	}
	c.in <- agent.Message{Kind: kind, Body: data}
}

func (c *conductor) Receive(ctx context.Context) (agent.Message, error) {
	select {
	case m := <-c.in:
		return m, nil
	case <-ctx.Done():
		return agent.Message{}, ctx.Err()
	}
}

func (c *conductor) start() {
	at := time.Now().Add(c.delay).Truncate(time.Millisecond)
	c.push(Start, StartBody{At: at.UnixNano(), Ahead: c.ahead})
}

func (c *conductor) Emit(kind string, body any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch kind {
	case Assigned:
		c.notes = body.(AssignedBody).Notes
		if c.producer {
			c.push(Probe, ProbeBody{})
		} else {
			c.start()
		}
	case Probed:
		c.probed += len(body.(ProbeBody).Producers)
		c.maybeStart()
	case Read:
		for _, p := range body.(ProbeBody).Producers {
			c.read[p]++
		}
		c.maybeStart()
	case Tick:
		c.ticks = append(c.ticks, body.(Interval))
		if c.settled != nil && c.settled(body.(Interval).Counters) {
			c.settled = nil
			c.push(Stop, struct{}{})
		}
	case Produced:
		if c.settled == nil {
			c.push(Stop, struct{}{})
		}
	case End:
		s := body.(Summary)
		c.summary = &s
	default:
		c.t.Errorf("unexpected message %q", kind)
	}
	return nil
}

func (c *conductor) maybeStart() {
	if c.probed > 0 && (c.settled == nil || len(c.read) == c.probed) {
		c.probed = math.MinInt
		c.start()
	}
}

// histogram merges one histogram of all intervals.
func (c *conductor) histogram(name string) *hdrhistogram.Histogram {
	c.t.Helper()
	out := NewHistogram()
	for _, tick := range c.ticks {
		text, ok := tick.Histograms[name]
		if !ok {
			continue
		}
		h, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			c.t.Fatal(err)
		}
		if dropped := out.Merge(h); dropped != 0 {
			c.t.Fatalf("%s: %d values dropped", name, dropped)
		}
	}
	return out
}

// virtual runs do in a bubble of virtual time with a broker in memory, whose
// answers arrive when hold says (nil: at once).
func virtual(t *testing.T, hold func(now time.Time) time.Duration, do func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		memory := &kfake.VirtualNetwork{}
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.ListenFn(memory.Listen), kfake.Ports(9092), kfake.SeedTopics(1, "t"))
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		do(t, cluster, kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := memory.DialContext(ctx, network, addr)
			return &distant{Conn: conn, hold: hold}, err
		}))
	})
}

// distant is a connection whose answers are held back.
type distant struct {
	net.Conn
	hold func(now time.Time) time.Duration
	head []byte // of an answer: its length, as far as it has come
	left int    // bytes of the answer that are still to come
}

func (d *distant) Read(p []byte) (int, error) {
	n, err := d.Conn.Read(p)
	begins := false
	for got := p[:n]; len(got) > 0; {
		if skip := min(d.left, len(got)); skip > 0 {
			got, d.left = got[skip:], d.left-skip
			continue
		}
		begins = begins || len(d.head) == 0
		d.head = append(d.head, got[0])
		got = got[1:]
		if len(d.head) == 4 {
			d.left, d.head = int(binary.BigEndian.Uint32(d.head)), d.head[:0]
		}
	}
	if begins && d.hold != nil {
		time.Sleep(d.hold(time.Now()))
	}
	return n, err
}

// goSleeper sleeps by Go's timers, which a bubble of virtual time has.
func goSleeper(c clock) sleeper {
	return func(at int64) { time.Sleep(time.Duration(at - c.now())) }
}

// always holds every answer back for so long.
func always(by time.Duration) func(time.Time) time.Duration {
	return func(time.Time) time.Duration { return by }
}

func TestCoordinatedOmission(t *testing.T) {
	var start atomic.Pointer[time.Time]
	// The broker answers in 1 ms, but not at all from second 5 to second 15.
	stalls := func(now time.Time) time.Duration {
		if s := start.Load(); s != nil {
			if at := now.Sub(*s); at >= 5*time.Second && at < 15*time.Second {
				return 15*time.Second - at
			}
		}
		return time.Millisecond
	}
	virtual(t, stalls, func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
		c := newConductor(t)
		c.producer = true
		load := spec(cluster, 1, func(s *Spec) { s.Rate, s.Window = 1000, 20*time.Second })
		if err := run(t.Context(), load, &startTeller{c, &start}, goSleeper, dial); err != nil {
			t.Fatal(err)
		}
		h := c.histogram(Produce)
		if h.TotalCount() != 20000 {
			t.Errorf("%d records, want 20000", h.TotalCount())
		}
		near(t, "p75", seconds(h.ValueAtQuantile(75)), 5.0, 0.05)
		near(t, "p99", seconds(h.ValueAtQuantile(99)), 9.8, 0.05)
		near(t, "max", seconds(h.Max()), 10, 0.05)
		near(t, "mean", h.Mean()/1e9, 2.5, 0.05)
		if late := c.histogram(Late); seconds(late.ValueAtQuantile(99)) > 0.001 {
			t.Errorf("the scheduler was late by %v: the broker's stall is not its own", late.ValueAtQuantile(99))
		}
		if s := c.summary; s.Censored != 0 || s.Counters.Failed != 0 || s.Counters.Full != 0 {
			t.Errorf("summary %+v", s)
		}
	})
}

// startTeller notes when the load starts.
type startTeller struct {
	*conductor
	at *atomic.Pointer[time.Time]
}

func (s *startTeller) Receive(ctx context.Context) (agent.Message, error) {
	m, err := s.conductor.Receive(ctx)
	if m.Kind == Start {
		var body StartBody
		if err := json.Unmarshal(m.Body, &body); err != nil {
			return m, err
		}
		at := time.Unix(0, body.At)
		s.at.Store(&at)
	}
	return m, err
}

func near(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if math.Abs(got-want) > by {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, by)
	}
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// contextAfter ends after a while.
func contextAfter(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
