// Package kafka makes Kafka clients for a cluster of a rig, and reads and writes
// the properties files that Kafka takes its settings from. Every connection
// to a broker is opened from a host of the rig, never from this machine:
// brokers listen on the rig's internal network alone. Provision and bench
// share it; it starts no process and decides nothing about a cluster.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"krig/internal/remote"
	"krig/internal/rundir"
)

const (
	dialLimit    = 10 * time.Second // one connection through a host, its SSH handshake included
	requestLimit = 30 * time.Second // one request with all its retries
	retries      = 5
	metadataAge  = 250 * time.Millisecond // leaders of fresh topics are looked for this often
)

// ErrNoBrokers says that a cluster names no broker to connect to.
var ErrNoBrokers = errors.New("the cluster has no brokers")

// Client connects to the brokers of cl, each through its own host or, where
// that cannot be reached, through another host of the cluster. Options given
// here override the package's bounds: retries end after 30 s. The caller closes it.
func Client(f *remote.Fleet, cl *rundir.Cluster, opts ...kgo.Opt) (*kgo.Client, error) {
	if len(cl.Brokers) == 0 {
		return nil, fmt.Errorf("connecting to Kafka: %w", ErrNoBrokers)
	}
	all := append([]kgo.Opt{
		kgo.SeedBrokers(cl.Bootstrap()...),
		kgo.Dialer(dialer(f, cl)),
		kgo.RetryTimeout(requestLimit),
		kgo.RequestRetries(retries),
		kgo.MetadataMinAge(metadataAge),
	}, opts...)
	client, err := kgo.NewClient(all...)
	if err != nil {
		return nil, fmt.Errorf("connecting to Kafka: %w", err)
	}
	return client, nil
}

// Admin is [Client] for administration. Closing it closes its connections.
func Admin(f *remote.Fleet, cl *rundir.Cluster, opts ...kgo.Opt) (*kadm.Client, error) {
	client, err := Client(f, cl, opts...)
	if err != nil {
		return nil, err
	}
	adm := kadm.NewClient(client)
	adm.SetTimeoutMillis(int32(requestLimit.Milliseconds()))
	return adm, nil
}

// dialer opens connections from hosts of the cluster.
func dialer(f *remote.Fleet, cl *rundir.Cluster) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialLimit)
		defer cancel()
		var lost error
		for _, host := range through(cl, addr) {
			c, err := f.Conn(ctx, host)
			var conn net.Conn
			if err == nil {
				conn, err = c.DialContext(ctx, network, addr)
				if !errors.Is(err, remote.ErrLost) {
					return conn, err // where the host answers and the broker does not, no other host would do better
				}
			}
			lost = errors.Join(lost, err)
		}
		return nil, fmt.Errorf("connecting to %s: no host of the cluster can be reached: %w", addr, lost)
	}
}

// through lists the hosts from which an address may be reached, best first:
// the host of that broker, then every other broker's.
func through(cl *rundir.Cluster, addr string) []string {
	var own, others []string
	for _, b := range cl.Brokers {
		if b.Listener == addr {
			own = append(own, b.Host)
		} else {
			others = append(others, b.Host)
		}
	}
	return append(own, others...)
}
