package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"krig/internal/experiment"
	"krig/internal/kafka"
	"krig/internal/rundir"
)

const (
	topicLimit  = 2 * time.Minute // topics made and led
	removeLimit = time.Minute     // topics deleted
	topicLook   = 100 * time.Millisecond
	perRequest  = 500 // topics
)

// topics are the topics of one load. They are made spread over all brokers and
// deleted after it.
type topics struct {
	names      []string
	partitions int
	replicas   int
	client     *kgo.Client
	admin      *kadm.Client
}

// makeTopics creates a cell's topics and waits until each partition has a
// leader and all its replicas in sync; for a driver that makes its own it only
// connects. The caller closes them; when there is an error nothing is left open.
func (s *Session) makeTopics(ctx context.Context, cl *rundir.Cluster, c *experiment.Cell, d driver) (*topics, error) {
	ctx, cancel := context.WithTimeout(ctx, topicLimit)
	defer cancel()
	client, err := kafka.Client(s.fleet, cl)
	if err != nil {
		return nil, err
	}
	t := &topics{
		partitions: int(c.Resolve(c.Bench.Partitions)), replicas: c.Bench.ReplicationFactor,
		client: client, admin: kadm.NewClient(client),
	}
	s.sweep(ctx, t.admin)
	if d.ownTopics {
		return t, nil
	}
	for range c.Resolve(c.Bench.Topics) {
		s.topics++
		t.names = append(t.names, topicName(c.ID, s.topics))
	}
	plan := spread(brokerIDs(cl), len(t.names), t.partitions, t.replicas)
	config := topicConfig(c, t, s.room(cl))
	for from := 0; from < len(t.names) && err == nil; from += perRequest {
		to := min(from+perRequest, len(t.names))
		err = t.create(ctx, t.names[from:to], plan[from:to], config)
	}
	if err == nil {
		err = t.await(ctx)
	}
	if err != nil {
		err = fmt.Errorf("making topics: %w", err)
		return nil, errors.Join(err, t.remove(context.WithoutCancel(ctx)), t.close())
	}
	return t, nil
}

// unfit are the characters that a topic's name may not hold.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// sweep deletes topics that an earlier load could not: its cluster was broken then. What
// cannot be deleted now either is tried again before the next load.
func (s *Session) sweep(ctx context.Context, admin *kadm.Client) {
	if len(s.residue) == 0 {
		return
	}
	deleted, err := admin.DeleteTopics(ctx, s.residue...)
	if err != nil {
		s.report("topics of an earlier load are still there: %v", err)
		return
	}
	s.residue = nil
	for _, d := range deleted {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			s.residue = append(s.residue, d.Topic)
		}
	}
}

// topicName is a cell's id made fit for Kafka, at most 249 characters.
func topicName(cell string, n int) string {
	end := "-" + strconv.Itoa(n)
	name := "krig-" + unfit.ReplaceAllString(cell, "-")
	return name[:min(len(name), 249-len(end))] + end
}

func brokerIDs(cl *rundir.Cluster) []int32 {
	out := make([]int32, len(cl.Brokers))
	for i, b := range cl.Brokers {
		out[i] = b.ID
	}
	return out
}

// spread places partitions so that leaders and replicas are even over the
// brokers across all topics: [topic][partition] → brokers, the leader first.
func spread(brokers []int32, topics, partitions, replicas int) [][][]int32 {
	out := make([][][]int32, topics)
	next := 0
	for t := range out {
		out[t] = make([][]int32, partitions)
		for p := range out[t] {
			// From one round of leaders to the next the followers move on, so that
			// a broker's load is not copied to one neighbour alone.
			shift := 0
			if len(brokers) > 1 {
				shift = next / len(brokers) % (len(brokers) - 1)
			}
			for r := range replicas {
				at := next
				if r > 0 {
					at += 1 + (shift+r-1)%(len(brokers)-1)
				}
				out[t][p] = append(out[t][p], brokers[at%len(brokers)])
			}
			next++
		}
	}
	return out
}

// topicConfig is what the load's topics need: their files go soon after them and,
// where the load has no end by records, they do not grow beyond the disks.
func topicConfig(c *experiment.Cell, t *topics, room int64) map[string]string {
	out := map[string]string{"file.delete.delay.ms": "1000"}
	copies := int64(len(t.names)) * int64(t.partitions) * int64(t.replicas)
	if c.Bench.Records.Set || room <= 0 {
		return out
	}
	each := max(room/2/copies, 4<<20)
	out["retention.bytes"] = strconv.FormatInt(each, 10)
	out["segment.bytes"] = strconv.FormatInt(min(max(each/4, 1<<20), 1<<30), 10)
	return out
}

// room is the size of all brokers' data disks; 0 when not known.
func (s *Session) room(cl *rundir.Cluster) int64 {
	var total int64
	for _, b := range cl.Brokers {
		h, _ := s.host(b.Host)
		for _, d := range h.Disks {
			total += d.Size
		}
	}
	return total
}

func (t *topics) create(ctx context.Context, names []string, plan [][][]int32, config map[string]string) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(topicLimit.Milliseconds() / 2)
	for i, name := range names {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
		for p, replicas := range plan[i] {
			a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
			a.Partition, a.Replicas = int32(p), replicas
			topic.ReplicaAssignment = append(topic.ReplicaAssignment, a)
		}
		for key, value := range config {
			entry := kmsg.NewCreateTopicsRequestTopicConfig()
			entry.Name, entry.Value = key, &value
			topic.Configs = append(topic.Configs, entry)
		}
		req.Topics = append(req.Topics, topic)
	}
	resp, err := req.RequestWith(ctx, t.client)
	if err != nil {
		return err
	}
	var errs []error
	for _, topic := range resp.Topics {
		if err := kerr.ErrorForCode(topic.ErrorCode); err != nil {
			why := ""
			if topic.ErrorMessage != nil {
				why = ": " + *topic.ErrorMessage
			}
			errs = append(errs, fmt.Errorf("%s: %w%s", topic.Topic, err, why))
		}
	}
	return errors.Join(errs...)
}

// await waits until every partition has a leader and all its replicas.
func (t *topics) await(ctx context.Context) error {
	for {
		lack, err := t.lacking(ctx)
		if err == nil && lack == "" {
			return nil
		}
		select {
		case <-time.After(topicLook):
		case <-ctx.Done():
			return fmt.Errorf("waiting for leaders: %s: %w", lack, errors.Join(err, ctx.Err()))
		}
	}
}

// lacking names one partition that is not ready yet; "" when all are.
func (t *topics) lacking(ctx context.Context) (string, error) {
	meta, err := t.admin.Metadata(ctx, t.names...)
	if err != nil {
		return "no metadata", err
	}
	for _, name := range t.names {
		topic := meta.Topics[name]
		if topic.Err != nil || len(topic.Partitions) != t.partitions {
			return fmt.Sprintf("%s has %d of %d partitions", name, len(topic.Partitions), t.partitions), topic.Err
		}
		for p, part := range topic.Partitions {
			if part.Leader < 0 || len(part.ISR) < t.replicas {
				return fmt.Sprintf("%s-%d is led by %d with %d of %d replicas in sync", name, p, part.Leader, len(part.ISR), t.replicas), nil
			}
		}
	}
	return "", nil
}

// remove deletes the topics and the groups that read them, and waits until no broker knows them.
func (t *topics) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removeLimit)
	defer cancel()
	if len(t.names) == 0 {
		return nil
	}
	groups, err := t.admin.DeleteGroups(ctx, t.names...)
	_ = groups // most were never made
	var errs []error
	if err != nil && ctx.Err() != nil {
		errs = append(errs, err)
	}
	deleted, err := t.admin.DeleteTopics(ctx, t.names...)
	errs = append(errs, err)
	for _, d := range deleted {
		if d.Err != nil && !errors.Is(d.Err, kerr.UnknownTopicOrPartition) {
			errs = append(errs, fmt.Errorf("%s: %w", d.Topic, d.Err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("deleting topics: %w", err)
	}
	return nil
}

// ends is the sum of all end offsets: how many records the brokers have appended.
func (t *topics) ends(ctx context.Context) (int64, error) {
	listed, err := t.admin.ListEndOffsets(ctx, t.names...)
	if err != nil {
		return 0, fmt.Errorf("asking for end offsets: %w", err)
	}
	var total int64
	listed.Each(func(o kadm.ListedOffset) {
		if o.Err != nil && err == nil {
			err = fmt.Errorf("end offset of %s-%d: %w", o.Topic, o.Partition, o.Err)
		}
		total += o.Offset
	})
	return total, err
}

func (t *topics) close() error {
	t.admin.Close()
	return nil
}
