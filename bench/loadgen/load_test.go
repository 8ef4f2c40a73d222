package loadgen

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"krig/internal/agent"
)

// conductor is the caller's side of loads: it leads them through probes, start and
// stop, and keeps what they send. A message out of order fails the test.
type conductor struct {
	t     testing.TB
	in    chan agent.Message
	ahead map[int]int64

	mu       sync.Mutex
	expect   []string
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

// virtual runs do in a bubble of virtual time with a broker in memory.
func virtual(t *testing.T, topics map[string]int32, do func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := &kfake.VirtualNetwork{}
		opts := []kfake.Opt{kfake.NumBrokers(1), kfake.ListenFn(net.Listen), kfake.Ports(9092)}
		for topic, n := range topics {
			opts = append(opts, kfake.SeedTopics(n, topic))
		}
		cluster, err := kfake.NewCluster(opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer cluster.Close()
		do(t, cluster, kgo.Dialer(net.DialContext))
	})
}

func TestCoordinatedOmission(t *testing.T) {
	virtual(t, map[string]int32{"t": 1}, func(t *testing.T, cluster *kfake.Cluster, dial kgo.Opt) {
		c := newConductor(t)
		c.producer = true
		var start time.Time
		// The broker answers in 1 ms, but not at all from second 5 to second 15.
		cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			cluster.KeepControl()
			wait := time.Millisecond
			if at := time.Since(start); !start.IsZero() && at > 5*time.Second && at < 15*time.Second {
				wait = 15*time.Second - at
			}
			cluster.SleepControl(func() { time.Sleep(wait) })
			return nil, nil, false
		})
		start = time.Now().Add(c.delay) // moved to the real start below
		spec := &Spec{
			Brokers: cluster.ListenAddrs(), Workers: 1, ProducersInAll: 1,
			Producers:  []Producer{{Index: 0, Topics: []string{"t"}}},
			RecordSize: 100, Rate: 1000, Window: 20 * time.Second, Await: 30 * time.Second,
			ProducerSettings: map[string]string{"acks": "1", "linger.ms": "0"},
		}
		if err := run(t.Context(), spec, &startTeller{c, &start}, goSleeper, dial); err != nil {
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
	at *time.Time
}

func (s *startTeller) Receive(ctx context.Context) (agent.Message, error) {
	m, err := s.conductor.Receive(ctx)
	if m.Kind == Start {
		var body StartBody
		if err := json.Unmarshal(m.Body, &body); err != nil {
			return m, err
		}
		*s.at = time.Unix(0, body.At)
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

var _ = fmt.Sprint
var _ = strings.Join
