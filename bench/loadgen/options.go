package loadgen

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"krig/internal/result"
)

// Settings are Kafka's client settings turned into franz-go's.
type Settings struct {
	Opts       []kgo.Opt
	NotApplied []result.NotApplied // what has no effect here, or another one than in Kafka's own client
	Notes      []string            // what else to know of the load
	Acks0      bool                // producer: nothing is acknowledged

	buffer int64 // producer: buffer.memory
	poll   int   // consumer: max.poll.records; 0 is no limit
}

// change remembers that a setting has no effect here, or another one.
func (s *Settings) change(key, asked, reason string, args ...any) {
	s.NotApplied = append(s.NotApplied, result.NotApplied{Key: key, Asked: asked, Reason: fmt.Sprintf(reason, args...)})
}

// settings reads a map of Kafka's names and remembers which were read.
type settings struct {
	left map[string]string
	errs []string
}

func (s *settings) text(key, def string) string {
	v, ok := s.left[key]
	if !ok {
		return def
	}
	delete(s.left, key)
	return strings.TrimSpace(v)
}

func (s *settings) number(key string, def, low, high int64) int64 {
	text := s.text(key, "")
	if text == "" {
		return def
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		s.errs = append(s.errs, fmt.Sprintf("%s: %q is not a whole number from %d to %d", key, text, low, high))
		return def
	}
	return n
}

func (s *settings) flag(key string, def bool) bool {
	switch text := strings.ToLower(s.text(key, strconv.FormatBool(def))); text {
	case "true", "false":
		return text == "true"
	default:
		s.errs = append(s.errs, fmt.Sprintf("%s: %q is neither true nor false", key, text))
		return def
	}
}

func (s *settings) millis(key string, def time.Duration) time.Duration {
	return time.Duration(s.number(key, def.Milliseconds(), 0, 1<<40)) * time.Millisecond
}

// finish lists what nobody read, and joins what was wrong.
func (s *settings) finish(out *Settings) error {
	for _, key := range slices.Sorted(maps.Keys(s.left)) {
		out.change(key, s.left[key], "has no effect in the native driver")
	}
	if len(s.errs) > 0 {
		return fmt.Errorf("%s", strings.Join(s.errs, "; "))
	}
	return nil
}

// ProducerSettings reads producer settings. What is not set is as in Kafka's
// own producer of version 4: acks=all, batches of 16384 bytes, 5 ms of linger,
// no compression, 32 MiB of buffer, five requests in flight.
func ProducerSettings(asked map[string]string, recordSize int) (*Settings, error) {
	s := &settings{left: maps.Clone(asked)}
	out := &Settings{}
	s.reliability(out)
	s.batching(out, recordSize)
	if codec, ok := codecs()[s.text("compression.type", "none")]; ok {
		out.Opts = append(out.Opts, kgo.ProducerBatchCompression(codec()))
	} else {
		s.errs = append(s.errs, fmt.Sprintf("compression.type: %q is none of none, gzip, snappy, lz4, zstd", asked["compression.type"]))
	}
	if codec := asked["compression.type"]; codec != "" && codec != "none" {
		out.Notes = append(out.Notes, "compression.type="+codec+": values are random bytes, which no codec makes smaller")
	}
	out.buffer = s.number("buffer.memory", 32<<20, 1, 1<<40)
	if v := s.number("max.request.size", 0, 1<<10, 1<<30); v > 0 {
		out.Opts = append(out.Opts, kgo.BrokerMaxWriteBytes(int32(v)))
	}
	out.Opts = append(out.Opts, kgo.RecordDeliveryTimeout(max(s.millis("delivery.timeout.ms", 2*time.Minute), time.Second)))
	if v := s.millis("request.timeout.ms", 0); v > 0 {
		out.Opts = append(out.Opts, kgo.ProduceRequestTimeout(max(v, 100*time.Millisecond)))
	}
	if v := s.number("retries", -1, 0, 1<<31-1); v >= 0 {
		out.Opts = append(out.Opts, kgo.RecordRetries(int(v)))
	}
	s.client(out, "krig-producer")
	// The client's own limits lie beyond ours: see producer.send.
	out.Opts = append(out.Opts, kgo.MaxBufferedRecords(1<<30))
	return out, s.finish(out)
}

func codecs() map[string]func() kgo.CompressionCodec {
	return map[string]func() kgo.CompressionCodec{
		"none":   kgo.NoCompression,
		"gzip":   kgo.GzipCompression,
		"snappy": kgo.SnappyCompression,
		"lz4":    kgo.Lz4Compression,
		"zstd":   kgo.ZstdCompression,
	}
}

// reliability reads acks, idempotence and the requests in flight, which hang together.
func (s *settings) reliability(out *Settings) {
	acks := s.text("acks", "all")
	_, asked := s.left["enable.idempotence"]
	idempotent := s.flag("enable.idempotence", true)
	flight := s.number("max.in.flight.requests.per.connection", 5, 1, 1<<20)
	switch acks {
	case "all", "-1":
		out.Opts = append(out.Opts, kgo.RequiredAcks(kgo.AllISRAcks()))
	case "1":
		out.Opts = append(out.Opts, kgo.RequiredAcks(kgo.LeaderAck()))
	case "0":
		out.Acks0 = true
		out.Opts = append(out.Opts, kgo.RequiredAcks(kgo.NoAck()))
	default:
		s.errs = append(s.errs, fmt.Sprintf("acks: %q is none of 0, 1, all", acks))
	}
	if idempotent && acks != "all" && acks != "-1" {
		if asked {
			s.errs = append(s.errs, fmt.Sprintf("enable.idempotence: true needs acks=all, not %s", acks))
		}
		idempotent = false
	}
	if idempotent && flight > 5 && !asked {
		idempotent = false // as Kafka's own client does
	}
	if !idempotent {
		out.Opts = append(out.Opts, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(int(flight)))
	} else if flight != 5 {
		out.change("max.in.flight.requests.per.connection", strconv.FormatInt(flight, 10), "has no effect in the native driver with idempotence: it is 5")
	}
}

const (
	leastBatch = 512 // that franz-go takes
	// What a batch of one record takes beside its value, at most, and the least
	// that a further record takes beside its own.
	batchFrame, recordFrame = 96, 8
)

// batching reads batch.size and linger.ms. Kafka's producer puts a record
// that is larger than the batch into one of its own; franz-go would refuse it, so the
// limit becomes what one record takes and two do not.
func (s *settings) batching(out *Settings, recordSize int) {
	asked := s.number("batch.size", 16384, 0, 1<<30)
	size := asked
	if alone := int64(recordSize + batchFrame); size < alone {
		size = alone
	}
	if size < leastBatch {
		size = leastBatch
	}
	if fits := (size - 61) / int64(recordSize+recordFrame); asked < leastBatch && fits > 1 {
		out.change("batch.size", strconv.FormatInt(asked, 10), "acts as %d in the native driver: up to %d records of %d bytes a batch", size, fits, recordSize)
	}
	linger := s.millis("linger.ms", 5*time.Millisecond)
	if linger > time.Minute {
		out.change("linger.ms", strconv.FormatInt(linger.Milliseconds(), 10), "acts as 60000 in the native driver")
		linger = time.Minute
	}
	out.Opts = append(out.Opts,
		kgo.ProducerBatchMaxBytes(int32(size)),
		kgo.ProducerLinger(linger),
		kgo.RecordPartitioner(kgo.UniformBytesPartitioner(int(max(size, 1024)), true, true, nil)))
}

// client reads what producers and consumers share.
func (s *settings) client(out *Settings, id string) {
	out.Opts = append(out.Opts, kgo.ClientID(s.text("client.id", id)), kgo.DisableClientMetrics())
	if v := s.millis("metadata.max.age.ms", 0); v > 0 {
		out.Opts = append(out.Opts, kgo.MetadataMaxAge(max(v, 5*time.Second)))
	}
	if v := s.text("client.rack", ""); v != "" {
		out.Opts = append(out.Opts, kgo.Rack(v))
	}
}

// ConsumerSettings reads consumer settings. What is not set is as in Kafka's
// own consumer, but that topics are read from their beginning and a poll takes what there
// is.
func ConsumerSettings(asked map[string]string) (*Settings, error) {
	s := &settings{left: maps.Clone(asked)}
	out := &Settings{}
	s.fetching(out)
	s.membership(out)
	out.poll = int(s.number("max.poll.records", 0, 1, 1<<30))
	switch v := s.text("auto.offset.reset", "earliest"); v {
	case "earliest":
		out.Opts = append(out.Opts, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	case "latest":
		out.Opts = append(out.Opts, kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
	default:
		s.errs = append(s.errs, fmt.Sprintf("auto.offset.reset: %q is neither earliest nor latest", v))
	}
	switch v := s.text("isolation.level", "read_uncommitted"); v {
	case "read_uncommitted":
	case "read_committed":
		out.Opts = append(out.Opts, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	default:
		s.errs = append(s.errs, fmt.Sprintf("isolation.level: %q is neither read_uncommitted nor read_committed", v))
	}
	if !s.flag("check.crcs", true) {
		out.Opts = append(out.Opts, kgo.DisableFetchCRCValidation())
	}
	s.client(out, "krig-consumer")
	return out, s.finish(out)
}

func (s *settings) fetching(out *Settings) {
	most := s.number("fetch.max.bytes", 50<<20, 1, 1<<30)
	part := s.number("max.partition.fetch.bytes", 1<<20, 1, 1<<30)
	out.Opts = append(out.Opts,
		kgo.BrokerMaxReadBytes(int32(max(most, 100<<20))),
		kgo.FetchMaxBytes(int32(most)),
		kgo.FetchMaxPartitionBytes(int32(part)),
		kgo.FetchMinBytes(int32(s.number("fetch.min.bytes", 1, 0, 1<<30))),
		kgo.FetchMaxWait(max(s.millis("fetch.max.wait.ms", 500*time.Millisecond), 10*time.Millisecond)))
}

func balancers() map[string]func() kgo.GroupBalancer {
	return map[string]func() kgo.GroupBalancer{
		"RangeAssignor":             kgo.RangeBalancer,
		"RoundRobinAssignor":        kgo.RoundRobinBalancer,
		"StickyAssignor":            kgo.StickyBalancer,
		"CooperativeStickyAssignor": kgo.CooperativeStickyBalancer,
	}
}

func (s *settings) membership(out *Settings) {
	session := max(s.millis("session.timeout.ms", 45*time.Second), 100*time.Millisecond)
	beat := min(max(s.millis("heartbeat.interval.ms", 3*time.Second), time.Millisecond), session)
	out.Opts = append(out.Opts, kgo.SessionTimeout(session), kgo.HeartbeatInterval(beat))
	if v := s.millis("max.poll.interval.ms", 0); v > 0 {
		out.Opts = append(out.Opts, kgo.RebalanceTimeout(max(v, 100*time.Millisecond)))
	}
	commit := s.millis("auto.commit.interval.ms", 5*time.Second)
	if s.flag("enable.auto.commit", true) {
		out.Opts = append(out.Opts, kgo.AutoCommitInterval(max(commit, 100*time.Millisecond)))
	} else {
		out.Opts = append(out.Opts, kgo.DisableAutoCommit())
	}
	var chosen []kgo.GroupBalancer
	for class := range strings.SplitSeq(s.text("partition.assignment.strategy", "RangeAssignor"), ",") {
		name := strings.TrimPrefix(strings.TrimSpace(class), "org.apache.kafka.clients.consumer.")
		make, ok := balancers()[name]
		if !ok {
			s.errs = append(s.errs, fmt.Sprintf("partition.assignment.strategy: %q is not one of Kafka's own", name))
			continue
		}
		chosen = append(chosen, make())
	}
	if len(chosen) > 0 {
		out.Opts = append(out.Opts, kgo.Balancers(chosen...))
	}
}
