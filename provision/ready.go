package provision

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sync/errgroup"

	"krig/internal/kafka"
	"krig/internal/rundir"
)

const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
)

// errStranger says that something else answers where a broker should: waiting
// does not help.
var errStranger = errors.New("something else answers")

// poll calls try, ever more slowly, until it succeeds, until it says that
// waiting does not help, or until ctx ends; the error then holds try's last.
func poll(ctx context.Context, try func(context.Context) error) error {
	wait := firstPoll
	for {
		err := try(ctx)
		if err == nil || errors.Is(err, errStranger) {
			return err
		}
		if perr := pause(ctx, wait); perr != nil {
			return fmt.Errorf("%w; last seen: %w", perr, err)
		}
		wait = min(wait*3/2, lastPoll)
	}
}

// ready waits until every broker of cl answers, says that all are registered
// and unfenced, and has led a partition.
func (s *site) ready(ctx context.Context, cl *rundir.Cluster) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, b := range cl.Brokers {
		g.Go(func() error {
			if err := s.registered(gctx, cl, b); err != nil {
				return fmt.Errorf("broker %d on %s is not ready: %w", b.ID, b.Host, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if err := s.reach(ctx, cl); err != nil {
		return err
	}
	s.say("", "all brokers are registered: having each lead a partition")
	return s.leads(ctx, cl)
}

// registered waits until one broker, asked at its own listener, knows every
// broker of the cluster.
func (s *site) registered(ctx context.Context, cl *rundir.Cluster, b rundir.Node) error {
	own := *cl
	own.Brokers = []rundir.Node{b}
	client, err := kafka.Client(s.f, &own, kgo.RequestRetries(0))
	if err != nil {
		return err
	}
	defer client.Close()
	return poll(ctx, func(ctx context.Context) error {
		v, err := viewFrom(ctx, client)
		if err != nil {
			return err
		}
		return v.against(cl, b)
	})
}

// view is what one broker says of its cluster.
type view struct {
	cluster string
	brokers map[int32]member
}

// member is one broker as another one sees it.
type member struct {
	address string
	fenced  bool
}

// viewFrom asks a client's one seed. Kafka before 4.0 lists only brokers that
// are unfenced.
func viewFrom(ctx context.Context, client *kgo.Client) (view, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req := kmsg.NewPtrDescribeClusterRequest()
	req.IncludeFencedBrokers = true
	raw, err := client.SeedBrokers()[0].Request(ctx, req)
	if err != nil {
		return view{}, err
	}
	resp := raw.(*kmsg.DescribeClusterResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return view{}, err
	}
	v := view{cluster: resp.ClusterID, brokers: map[int32]member{}}
	for _, b := range resp.Brokers {
		v.brokers[b.NodeID] = member{net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), b.IsFenced}
	}
	return v, nil
}

// against compares a view with the cluster that was started: its id, and every
// expected broker there, unfenced, at its own address. asked is the broker
// whose view it is.
func (v view) against(cl *rundir.Cluster, asked rundir.Node) error {
	if v.cluster != cl.ID {
		return fmt.Errorf("%w at %s: a broker of cluster %s, perhaps left from an earlier run; this one is %s", errStranger, asked.Listener, v.cluster, cl.ID)
	}
	var wrong []string
	for _, want := range cl.Brokers {
		got, ok := v.brokers[want.ID]
		switch {
		case !ok:
			wrong = append(wrong, fmt.Sprintf("broker %d is absent or fenced", want.ID))
		case got.fenced:
			wrong = append(wrong, fmt.Sprintf("broker %d is fenced", want.ID))
		case got.address != want.Listener:
			return fmt.Errorf("%w: broker %d says that it is at %s, not at %s", errStranger, want.ID, got.address, want.Listener)
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, ", "))
	}
	return nil
}

// readyTopic has one partition on each broker, for a moment.
const readyTopic = "krig-ready"

// leads has every broker lead one partition and answer for it.
func (s *site) leads(ctx context.Context, cl *rundir.Cluster) error {
	client, err := kafka.Client(s.f, cl)
	if err != nil {
		return err
	}
	defer client.Close()
	adm := kadm.NewClient(client)
	if err := poll(ctx, func(ctx context.Context) error { return createReady(ctx, client, cl) }); err != nil {
		return fmt.Errorf("making a topic led by each broker: %w", err)
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, b := range cl.Brokers {
		g.Go(func() error {
			return poll(gctx, func(ctx context.Context) error { return answers(ctx, client, b.ID, int32(i)) })
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("waiting for every broker to lead: %w", err)
	}
	return deleteReady(ctx, adm)
}

func createReady(ctx context.Context, client *kgo.Client, cl *rundir.Cluster) error {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = readyTopic, -1, -1
	for i, b := range cl.Brokers {
		t.ReplicaAssignment = append(t.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{Partition: int32(i), Replicas: []int32{b.ID}})
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32((10 * time.Second).Milliseconds())
	req.Topics = []kmsg.CreateTopicsRequestTopic{t}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, r := range resp.Topics {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("%w: %s", err, deref(r.ErrorMessage))
		}
	}
	return nil
}

// answers tells whether a broker answers as the leader of its partition. The
// broker itself is asked: what the client knows of leaders is a moment old.
func answers(ctx context.Context, client *kgo.Client, broker, partition int32) error {
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp = partition, -1 // its end
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = readyTopic, []kmsg.ListOffsetsRequestTopicPartition{p}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.Topics = -1, []kmsg.ListOffsetsRequestTopic{t}
	raw, err := client.Broker(int(broker)).Request(ctx, req)
	if err != nil {
		return err
	}
	for _, t := range raw.(*kmsg.ListOffsetsResponse).Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				return fmt.Errorf("broker %d: %w", broker, err)
			}
		}
	}
	return nil
}

// deleteReady deletes the topic and waits until no broker lists it.
func deleteReady(ctx context.Context, adm *kadm.Client) error {
	resp, err := adm.DeleteTopic(ctx, readyTopic)
	if err == nil {
		err = resp.Err
	}
	if err != nil {
		return fmt.Errorf("deleting topic %s: %w", readyTopic, err)
	}
	return poll(ctx, func(ctx context.Context) error {
		topics, err := adm.ListTopics(ctx)
		if err != nil {
			return err
		}
		if slices.Contains(topics.Names(), readyTopic) {
			return fmt.Errorf("topic %s is still listed", readyTopic)
		}
		return nil
	})
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
