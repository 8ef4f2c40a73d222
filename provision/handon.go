package provision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"krig/internal/kafka"
	"krig/internal/rundir"
)

// handOn moves every partition off the brokers that go to those that stay, and
// waits until it is done.
func (s *site) handOn(ctx context.Context, stay *rundir.Cluster, gone map[int32]bool) error {
	adm, err := kafka.Admin(s.f, stay)
	if err != nil {
		return err
	}
	defer adm.Close()
	if err := makeInternal(ctx, adm, stay); err != nil {
		return err
	}
	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return err
	}
	moves := moved(topics, ids(stay), gone)
	if len(moves) > 0 {
		s.say("", "moving the partitions of %d topics", len(moves))
		resp, err := adm.AlterPartitionAssignments(ctx, moves)
		if err == nil {
			err = resp.Error()
		}
		if err != nil {
			return err
		}
	}
	if err := poll(ctx, func(ctx context.Context) error { return handedOn(ctx, adm, gone) }); err != nil {
		return err
	}
	return fitMinISR(ctx, adm, topics, len(stay.Brokers))
}

// internalTopics are those that Kafka makes for itself when they are first
// needed, with the replication that it was configured for at the start.
var internalTopics = map[string]string{
	"__consumer_offsets":  "offsets.topic.replication.factor",
	"__transaction_state": "transaction.state.log.replication.factor",
}

// makeInternal has Kafka make its internal topics now where they could not be
// made later, with fewer brokers than their replication factor.
func makeInternal(ctx context.Context, adm *kadm.Client, stay *rundir.Cluster) error {
	asked := stay.Brokers[0].Asked
	late := func(topic string) bool {
		rf, err := strconv.Atoi(asked[internalTopics[topic]])
		return err == nil && rf > len(stay.Brokers)
	}
	var errs []error
	if late("__consumer_offsets") {
		errs = append(errs, poll(ctx, func(ctx context.Context) error { return adm.FindGroupCoordinators(ctx, "krig").Error() }))
	}
	if late("__transaction_state") {
		errs = append(errs, poll(ctx, func(ctx context.Context) error { return adm.FindTxnCoordinators(ctx, "krig").Error() }))
	}
	return errors.Join(errs...)
}

func ids(cl *rundir.Cluster) []int32 {
	out := make([]int32, len(cl.Brokers))
	for i, b := range cl.Brokers {
		out[i] = b.ID
	}
	return out
}

// moved gives every partition with a replica on a broker that goes a new list
// of replicas: those that stay keep theirs, and the least loaded of the others
// join until there are as many as before, or all.
func moved(topics kadm.TopicDetails, stay []int32, gone map[int32]bool) kadm.AlterPartitionAssignmentsReq {
	load := map[int32]int{}
	all := topics.Sorted()
	for _, t := range all {
		for _, p := range t.Partitions {
			for _, r := range p.Replicas {
				load[r]++
			}
		}
	}
	req := kadm.AlterPartitionAssignmentsReq{}
	for _, t := range all {
		for _, p := range t.Partitions.Sorted() {
			if slices.ContainsFunc(p.Replicas, func(r int32) bool { return gone[r] }) {
				req.Assign(t.Topic, p.Partition, replicasWithout(p.Replicas, stay, gone, load))
			}
		}
	}
	return req
}

func replicasWithout(have, stay []int32, gone map[int32]bool, load map[int32]int) []int32 {
	out := slices.DeleteFunc(slices.Clone(have), func(r int32) bool { return gone[r] })
	for len(out) < min(len(have), len(stay)) {
		free := slices.DeleteFunc(slices.Clone(stay), func(b int32) bool { return slices.Contains(out, b) })
		next := slices.MinFunc(free, func(a, b int32) int { return load[a] - load[b] })
		load[next]++
		out = append(out, next)
	}
	return out
}

// handedOn tells whether no partition has a replica on a broker that goes.
func handedOn(ctx context.Context, adm *kadm.Client, gone map[int32]bool) error {
	topics, err := adm.ListTopicsWithInternal(ctx)
	if err != nil {
		return err
	}
	left := 0
	topics.EachPartition(func(p kadm.PartitionDetail) {
		if slices.ContainsFunc(p.Replicas, func(r int32) bool { return gone[r] }) || gone[p.Leader] {
			left++
		}
	})
	if left > 0 {
		return fmt.Errorf("%d partitions are still on them", left)
	}
	return nil
}

// fitMinISR lowers the number of replicas that internal topics want in sync to
// the number of brokers, or nothing could be written to them any more.
func fitMinISR(ctx context.Context, adm *kadm.Client, topics kadm.TopicDetails, brokers int) error {
	var names []string
	for _, t := range topics {
		if t.IsInternal {
			names = append(names, t.Topic)
		}
	}
	if len(names) == 0 {
		return nil
	}
	configs, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return err
	}
	const key = "min.insync.replicas"
	for _, r := range configs {
		for _, c := range r.Configs {
			n, err := strconv.Atoi(c.MaybeValue())
			if c.Key != key || err != nil || n <= brokers {
				continue
			}
			value := strconv.Itoa(brokers)
			resp, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Op: kadm.SetConfig, Name: key, Value: &value}}, r.Name)
			if err == nil {
				_, err = resp.On(r.Name, func(a *kadm.AlterConfigsResponse) error { return a.Err })
			}
			if err != nil {
				return fmt.Errorf("setting %s of %s: %w", key, r.Name, err)
			}
		}
	}
	return nil
}

// forget unregisters brokers that were stopped and waits until nobody lists them.
func (s *site) forget(ctx context.Context, stay *rundir.Cluster, gone map[int32]bool) error {
	client, err := kafka.Client(s.f, stay)
	if err != nil {
		return err
	}
	defer client.Close()
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		if err := poll(ctx, func(ctx context.Context) error { return unregister(ctx, client, id) }); err != nil {
			return fmt.Errorf("broker %d: %w", id, err)
		}
	}
	adm := kadm.NewClient(client)
	return poll(ctx, func(ctx context.Context) error {
		brokers, err := adm.ListBrokers(ctx)
		if err != nil {
			return err
		}
		for _, id := range brokers.NodeIDs() {
			if gone[id] {
				return fmt.Errorf("broker %d is still listed", id)
			}
		}
		return nil
	})
}

func unregister(ctx context.Context, client *kgo.Client, id int32) error {
	req := kmsg.NewPtrUnregisterBrokerRequest()
	req.BrokerID = id
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	err = kerr.ErrorForCode(resp.ErrorCode)
	if errors.Is(err, kerr.BrokerIDNotRegistered) {
		return nil
	}
	return err
}
