package provision

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

func TestMoved(t *testing.T) {
	topics := kadm.TopicDetails{}
	add := func(topic string, partitions ...[]int32) {
		d := kadm.TopicDetail{Topic: topic, Partitions: kadm.PartitionDetails{}}
		for i, replicas := range partitions {
			d.Partitions[int32(i)] = kadm.PartitionDetail{Topic: topic, Partition: int32(i), Replicas: replicas, Leader: replicas[0]}
		}
		topics[topic] = d
	}
	add("__consumer_offsets", []int32{1, 2, 3}, []int32{2, 3, 1}, []int32{3, 1, 2})
	add("single", []int32{1}, []int32{2}, []int32{3}, []int32{3})
	for _, tt := range []struct {
		name string
		stay []int32
		gone map[int32]bool
		want kadm.AlterPartitionAssignmentsReq
	}{
		{"one of three", []int32{1, 2}, map[int32]bool{3: true}, kadm.AlterPartitionAssignmentsReq{
			"__consumer_offsets": {0: {1, 2}, 1: {2, 1}, 2: {1, 2}}, "single": {2: {1}, 3: {2}},
		}},
		{"two of three", []int32{1}, map[int32]bool{2: true, 3: true}, kadm.AlterPartitionAssignmentsReq{
			"__consumer_offsets": {0: {1}, 1: {1}, 2: {1}}, "single": {1: {1}, 2: {1}, 3: {1}},
		}},
		{"replaced by another", []int32{1, 2, 4}, map[int32]bool{3: true}, kadm.AlterPartitionAssignmentsReq{
			"__consumer_offsets": {0: {1, 2, 4}, 1: {2, 1, 4}, 2: {1, 2, 4}}, "single": {2: {4}, 3: {1}},
		}},
		{"none", []int32{1, 2, 3}, nil, kadm.AlterPartitionAssignmentsReq{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := moved(topics, tt.stay, tt.gone); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("moved = %v, want %v", got, tt.want)
			}
		})
	}
}
