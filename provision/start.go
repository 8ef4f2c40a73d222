package provision

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// Start formats and starts a new cluster on hosts that were prepared for the cell and returns when
// the admin API says that every broker is registered, unfenced and able to lead, with the
// effective configuration read back. When it fails, what it started is stopped
// and wiped, and the logs are home.
func Start(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell) (*rundir.Cluster, error) {
	s, err := newSite(ctx, run, f, hosts, p, c)
	if err != nil {
		return nil, err
	}
	brokers, controllers, err := placed(hosts, p, c, nil)
	if err != nil {
		return nil, err
	}
	if err := s.checkKeys(ctx, brokers[0]); err != nil {
		return nil, err
	}
	cl := &rundir.Cluster{ID: newClusterID(), Version: s.dist.version, Mode: c.Kafka.Mode, Started: time.Now().UTC(), Warnings: []string{}}
	nodes := append(controllers, brokers...)
	configure(s.l, c, cl.ID, voters(brokers, controllers), len(brokers), nodes)
	fill(cl, brokers, controllers, nil)
	s.say("", "starting Kafka %s: brokers %d, controllers of their own %d", s.dist.version, len(brokers), len(controllers))
	format, err := s.settle(ctx, cl.ID, nodes)
	if err != nil {
		return nil, err
	}
	pids, err := s.bringUp(ctx, cl, nodes, format)
	if err != nil {
		return nil, s.abandon(ctx, nodes, err)
	}
	fill(cl, brokers, controllers, pids)
	if err := s.readBack(ctx, cl); err != nil {
		return nil, s.abandon(ctx, nodes, err)
	}
	return cl, nil
}

// fill writes the nodes into a cluster's value.
func fill(cl *rundir.Cluster, brokers, controllers []*node, pids map[string]int) {
	cl.Brokers, cl.Controllers = []rundir.Node{}, []rundir.Node{}
	for _, n := range brokers {
		cl.Brokers = append(cl.Brokers, n.value(pids[n.name()]))
	}
	for _, n := range controllers {
		cl.Controllers = append(cl.Controllers, n.value(pids[n.name()]))
	}
}

// checkKeys asks the version itself, on a broker's host where this machine has no Java.
func (s *site) checkKeys(ctx context.Context, n *node) error {
	c, err := s.f.Conn(ctx, n.host.Name)
	if err != nil {
		return err
	}
	return s.dist.checkKnown(ctx, s.cell.Kafka.Broker, c, n.prepared.Java, s.l.dist(s.dist.id))
}

// newClusterID is a random id in Kafka's form: 16 bytes in URL-safe base64,
// never with a dash in front, which tools would take for an option.
func newClusterID() string {
	for {
		var b [16]byte
		rand.Read(b[:])
		if id := base64.RawURLEncoding.EncodeToString(b[:]); id[0] != '-' {
			return id
		}
	}
}
