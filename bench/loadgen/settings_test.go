package loadgen

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestSpecsThatMakeNoSense(t *testing.T) {
	good := func() *Spec {
		return &Spec{Brokers: []string{"b:9092"}, Workers: 1, ProducersInAll: 1, RecordSize: 1, Window: time.Second,
			Producers: []Producer{{Topics: []string{"t"}}}}
	}
	if err := good().check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Spec){
		"no brokers":    func(s *Spec) { s.Brokers = nil },
		"worker":        func(s *Spec) { s.Worker = MaxWorkers },
		"record size":   func(s *Spec) { s.RecordSize = 0 },
		"rate":          func(s *Spec) { s.Rate = -1 },
		"window":        func(s *Spec) { s.Window = 0 },
		"0 topics":      func(s *Spec) { s.Producers[0].Topics = nil },
		"producer 3 of": func(s *Spec) { s.Producers[0].Index = 3 },
	} {
		s := good()
		spoil(s)
		if err := s.check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
		if err := Run(t.Context(), s, newConductor(t)); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}

func TestProducerSettings(t *testing.T) {
	for _, tc := range []struct {
		asked map[string]string
		size  int
		notes []string
		err   string
		acks0 bool
	}{
		{asked: nil, size: 100},
		{asked: map[string]string{"acks": "0"}, size: 100, acks0: true},
		{asked: map[string]string{"acks": "2"}, size: 100, err: `acks: "2" is none of 0, 1, all`},
		{asked: map[string]string{"acks": "1", "enable.idempotence": "true"}, size: 100, err: "enable.idempotence: true needs acks=all, not 1"},
		{asked: map[string]string{"batch.size": "many"}, size: 100, err: `batch.size: "many" is not a whole number from 0 to 1073741824`},
		{asked: map[string]string{"linger.ms": "70000"}, size: 100, notes: []string{"linger.ms=70000 acts as 60000 in the native driver"}},
		{asked: map[string]string{"batch.size": "100"}, size: 10, notes: []string{"batch.size=100 acts as 512 in the native driver: up to 25 records of 10 bytes a batch"}},
		{asked: map[string]string{"send.buffer.bytes": "1"}, size: 100, notes: []string{"send.buffer.bytes=1 has no effect in the native driver"}},
		{asked: map[string]string{"compression.type": "brotli"}, size: 100, err: `compression.type: "brotli" is none of none, gzip, snappy, lz4, zstd`},
		{asked: map[string]string{"max.in.flight.requests.per.connection": "1"}, size: 100, notes: []string{"max.in.flight.requests.per.connection=1 has no effect in the native driver with idempotence: it is 5"}},
		{asked: map[string]string{"acks": "1", "max.in.flight.requests.per.connection": "1"}, size: 100},
	} {
		got, err := ProducerSettings(tc.asked, tc.size)
		if err != nil {
			if err.Error() != tc.err {
				t.Errorf("%v: error %q, want %q", tc.asked, err, tc.err)
			}
			continue
		}
		if tc.err != "" || got.Acks0 != tc.acks0 || !slices.Equal(notApplied(got), tc.notes) {
			t.Errorf("%v: notes %q acks0=%v, want %q %v and error %q", tc.asked, notApplied(got), got.Acks0, tc.notes, tc.acks0, tc.err)
		}
		client, err := kgo.NewClient(append(got.Opts, kgo.SeedBrokers("127.0.0.1:1"))...)
		if err != nil {
			t.Errorf("%v: franz-go refuses it: %v", tc.asked, err)
			continue
		}
		client.Close()
	}
}

func notApplied(s *Settings) []string {
	var out []string
	for _, n := range s.NotApplied {
		out = append(out, n.String())
	}
	return out
}

func TestConsumerSettings(t *testing.T) {
	for _, tc := range []struct {
		asked map[string]string
		notes []string
		err   string
	}{
		{asked: nil},
		{asked: map[string]string{"fetch.max.bytes": "1000", "fetch.max.wait.ms": "1", "session.timeout.ms": "1000", "max.poll.records": "10", "isolation.level": "read_committed", "enable.auto.commit": "false", "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor,RangeAssignor"}},
		{asked: map[string]string{"auto.offset.reset": "middle"}, err: `auto.offset.reset: "middle" is neither earliest nor latest`},
		{asked: map[string]string{"enable.auto.commit": "yes"}, err: `enable.auto.commit: "yes" is neither true nor false`},
		{asked: map[string]string{"partition.assignment.strategy": "Mine"}, err: `partition.assignment.strategy: "Mine" is not one of Kafka's own`},
		{asked: map[string]string{"receive.buffer.bytes": "1"}, notes: []string{"receive.buffer.bytes=1 has no effect in the native driver"}},
	} {
		got, err := ConsumerSettings(tc.asked)
		if err != nil {
			if err.Error() != tc.err {
				t.Errorf("%v: error %q, want %q", tc.asked, err, tc.err)
			}
			continue
		}
		if tc.err != "" || !slices.Equal(notApplied(got), tc.notes) {
			t.Errorf("%v: notes %q, want %q and error %q", tc.asked, notApplied(got), tc.notes, tc.err)
		}
		client, err := kgo.NewClient(append(got.Opts, kgo.SeedBrokers("127.0.0.1:1"), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"))...)
		if err != nil {
			t.Errorf("%v: franz-go refuses it: %v", tc.asked, err)
			continue
		}
		client.Close()
	}
}
