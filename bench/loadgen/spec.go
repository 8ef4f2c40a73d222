// Package loadgen is krig's own load: producers and consumers on franz-go that
// run inside krig-agent on the worker hosts. It loads one cluster once, by a
// [Spec], and streams counters and histograms to its caller; it computes no
// percentile, knows no other worker, and writes no file.
//
// At a rate it is an open loop: the k-th record of the whole load is due at
// start + k/rate, whatever became of the records before it, and latency runs
// from there. At rate 0 it is a ceiling: each producer sends whenever its
// client's buffer has room, and latency runs from the call.
package loadgen

import (
	"fmt"
	"time"

	"krig/internal/result"
)

// Spec is the share of a load that one worker carries. Every worker of a load
// gets the same figures but for its own producers and consumers.
type Spec struct {
	Brokers []string `json:"brokers"`
	Worker  int      `json:"worker"`  // this worker's number, from 0; below MaxWorkers
	Workers int      `json:"workers"` // of the whole load

	Producers      []Producer `json:"producers"`
	ProducersInAll int        `json:"producers_in_all"`
	Consumers      []Consumer `json:"consumers"`

	RecordSize int     `json:"record_size"` // bytes of each record's value
	Rate       float64 `json:"rate"`        // records/s of the whole load; 0 is as fast as possible
	ByRecords  bool    `json:"by_records"`  // the window ends with the producers' records, not after Window

	Warmup time.Duration `json:"warmup"` // ns of load before the window
	Window time.Duration `json:"window"` // ns of the measured window; 0 with ByRecords
	Await  time.Duration `json:"await"`  // ns that outstanding acknowledgements are awaited

	ProducerSettings map[string]string `json:"producer_settings"` // by Kafka's names
	ConsumerSettings map[string]string `json:"consumer_settings"` // by Kafka's names
}

// A Producer is one client that produces.
type Producer struct {
	Index   int      `json:"index"`   // among all producers of the load, from 0
	Topics  []string `json:"topics"`  // taken in turn, record by record
	Records int64    `json:"records"` // how many it sends in the window; with ByRecords
}

// A Consumer is one client that consumes as a member of a group.
type Consumer struct {
	Index  int      `json:"index"`
	Group  string   `json:"group"`
	Topics []string `json:"topics"`
}

// MaxWorkers is the most workers that one load can have: a record's header has
// room for as many.
const MaxWorkers = 1 << workerBits

// check refuses what the generator cannot do; its caller has a bug or sends nonsense.
func (s *Spec) check() error {
	switch {
	case len(s.Brokers) == 0:
		return fmt.Errorf("load: no brokers")
	case s.Worker < 0 || s.Worker >= MaxWorkers:
		return fmt.Errorf("load: worker %d is not between 0 and %d", s.Worker, MaxWorkers-1)
	case s.RecordSize < 1:
		return fmt.Errorf("load: record size %d is below 1", s.RecordSize)
	case s.Rate < 0:
		return fmt.Errorf("load: rate %v is below 0", s.Rate)
	case !s.ByRecords && len(s.Producers) > 0 && s.Window <= 0:
		return fmt.Errorf("load: neither a window nor a number of records")
	}
	for _, p := range s.Producers {
		if len(p.Topics) == 0 || p.Index >= s.ProducersInAll {
			return fmt.Errorf("load: producer %d of %d has %d topics", p.Index, s.ProducersInAll, len(p.Topics))
		}
	}
	return nil
}

// What worker and caller say to each other, in this order. All times are
// nanoseconds since the epoch on the worker's own clock.
const (
	Assigned = "assigned" // worker: clients are connected, consumers have their partitions (AssignedBody)
	Probe    = "probe"    // caller: send one uncounted record from each producer, or from those named (ProbeBody)
	Probed   = "probed"   // worker: these producers' probes are acknowledged (ProbeBody)
	Read     = "read"     // worker: these producers' probes were read here (ProbeBody)
	Start    = "start"    // caller: the load starts (StartBody)
	Tick     = "interval" // worker: one second of load (Interval)
	Produced = "produced" // worker: its producers are done, consumers go on (Counters)
	Stop     = "stop"     // caller: consumers may end (no body)
	End      = "end"      // worker: the last message (Summary)
)

// AssignedBody says what of the settings has no effect here or another one (keys
// as in an experiment: producer.linger.ms), and what else to know of the load.
type AssignedBody struct {
	Notes      []string            `json:"notes"`
	NotApplied []result.NotApplied `json:"not_applied"`
}

// ProbeBody names producers by their index; none means all.
type ProbeBody struct {
	Producers []int `json:"producers"`
}

// StartBody says when the load starts. Ahead says, by worker number, by how
// many nanoseconds that worker's clock is ahead of this one's.
type StartBody struct {
	At    int64         `json:"at"`
	Ahead map[int]int64 `json:"ahead"`
}

// An Interval is one second of load on one worker. Counters are cumulative
// since the start; histograms hold what was recorded since the interval
// before.
type Interval struct {
	From       int64             `json:"from"`
	To         int64             `json:"to"`
	Counters   Counters          `json:"counters"`
	Histograms map[string]string `json:"histograms"` // HdrHistogram V2, compressed, base64; values are ns
}

// Names of histograms. Only [Produce] has, beside the one of records intended
// inside the window, one of those outside.
const (
	Produce        = "produce"         // intended send, or at a ceiling the call, to acknowledgement
	ProduceOutside = "produce.outside" // the same for records intended outside the window
	Publish        = "publish"         // call to acknowledgement; at a rate only
	Delay          = "delay"           // intended send to call; at a rate only
	Late           = "late"            // intended send to the scheduler's waking; at a rate only
	EndToEnd       = "end_to_end."     // followed by the producing worker's number: intended send to read
)

// Counters of one worker, since the start of the load. Those that end in W
// are of the window alone.
type Counters struct {
	Sent      int64 `json:"sent"`     // handed to the client
	Acked     int64 `json:"acked"`    // acknowledged
	AckedW    int64 `json:"acked_w"`  // acknowledged inside the window, whenever intended
	Intended  int64 `json:"intended"` // due by now (at a ceiling: sent)
	IntendedW int64 `json:"intended_w"`
	Failed    int64 `json:"failed"`    // given up by the client
	FailedW   int64 `json:"failed_w"`  // intended inside the window and given up
	BlockedW  int64 `json:"blocked_w"` // intended inside the window and held back by a full client buffer
	Full      int64 `json:"full"`      // times that a client's buffer was found full
	Unsent    int64 `json:"unsent"`    // due and not yet handed to the client
	Consumed  int64 `json:"consumed"`
	ConsumedW int64 `json:"consumed_w"` // read inside the window
	Bytes     int64 `json:"bytes"`      // of values consumed
	BytesW    int64 `json:"bytes_w"`    // of values consumed inside the window
	Early     int64 `json:"early"`      // read before they were sent, by the two clocks
	Clipped   int64 `json:"clipped"`    // latencies below 1 µs or above 1 h, recorded as the nearest of these
}

// A Summary is a worker's last word.
type Summary struct {
	Counters  Counters `json:"counters"`
	Started   int64    `json:"started"`
	Window    [2]int64 `json:"window"`     // begin and end; with ByRecords the end is the last acknowledgement
	FirstRead int64    `json:"first_read"` // when the first record was read; 0 for none
	LastRead  int64    `json:"last_read"`  // when the last record was read; 0 for none
	CPU       float64  `json:"cpu"`        // seconds of processor that the agent used from start to end
	GCPause   float64  `json:"gc_pause"`   // seconds that collections stopped it, in all
	GCLongest float64  `json:"gc_longest"` // seconds of the longest
	Errors    []string `json:"errors"`     // the first few different ones
	Censored  int64    `json:"censored"`   // intended inside the window, neither acknowledged nor failed
}
