package kafka_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"krig/internal/kafka"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// fakeCluster is a Kafka in this process, as a cluster on the host "machine".
func fakeCluster(t *testing.T, brokers int) *rundir.Cluster {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.SeedTopics(2, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	cl := &rundir.Cluster{}
	for i, addr := range fake.ListenAddrs() {
		cl.Brokers = append(cl.Brokers, rundir.Node{ID: int32(i), Host: "machine", Listener: addr})
	}
	return cl
}

func newFleet(t *testing.T) *remote.Fleet {
	t.Helper()
	f := remote.NewFleet(t.TempDir())
	t.Cleanup(func() { f.Close() })
	return f
}

func TestClient(t *testing.T) {
	cl := fakeCluster(t, 3)
	client, err := kafka.Client(newFleet(t), cl, kgo.ConsumeTopics("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("hello")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	if r := fetches.Records(); len(r) != 1 || string(r[0].Value) != "hello" {
		t.Errorf("read %v, want hello", r)
	}
}

func TestAdmin(t *testing.T) {
	cl := fakeCluster(t, 3)
	adm, err := kafka.Admin(newFleet(t), cl)
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	topics, err := adm.ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := topics.Names(); !slices.Equal(got, []string{"t"}) {
		t.Errorf("topics %q, want t", got)
	}
}

// A broker whose own host cannot be reached is reached through another host of
// the cluster.
func TestThroughAnotherHost(t *testing.T) {
	cl := fakeCluster(t, 2)
	cl.Brokers[0].Host = "gone"
	adm, err := kafka.Admin(newFleet(t), cl)
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	if _, err := adm.ListBrokers(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNobodyThere(t *testing.T) {
	if _, err := kafka.Client(newFleet(t), &rundir.Cluster{}); !errors.Is(err, kafka.ErrNoBrokers) {
		t.Errorf("a client of a cluster without brokers: %v", err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.Addr().String()
	closed.Close()
	for _, tt := range []struct{ host, says string }{
		{"machine", "refused"},
		{"gone", "no host of the cluster can be reached: gone: connecting: no such host in the rig"},
	} {
		cl := &rundir.Cluster{Brokers: []rundir.Node{{ID: 1, Host: tt.host, Listener: addr}}}
		adm, err := kafka.Admin(newFleet(t), cl, kgo.RetryTimeout(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := adm.ListBrokers(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("brokers at a closed port of %s: %v, want %q", tt.host, err, tt.says)
		}
		adm.Close()
	}
}
