package provision

import (
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"

	"krig/internal/experiment"
	"krig/internal/rundir"
)

// node is one Kafka process to be.
type node struct {
	id         int32
	host       rundir.Host
	prepared   rundir.PreparedHost
	broker     bool
	controller bool
	dir        string // log.dirs
	logFile    string
	asked      map[string]string // server.properties
}

// firstController is the id of the first controller that has a process of its
// own; brokers' ids begin at 1.
const firstController = 3000

func (n *node) name() string {
	if n.broker {
		return "broker-" + strconv.Itoa(int(n.id))
	}
	return "controller-" + strconv.Itoa(int(n.id))
}

// roles is the value of process.roles.
func (n *node) roles() string {
	switch {
	case n.broker && n.controller:
		return "broker,controller"
	case n.broker:
		return "broker"
	}
	return "controller"
}

func (n *node) address(port int) string { return net.JoinHostPort(n.host.Internal, strconv.Itoa(port)) }

// placed says which processes run where: one broker on each broker's host;
// controllers on the controllers' hosts or, where there are none, one on the
// first broker's host; or, combined, in each broker. ids gives brokers that
// already are theirs, others get the lowest that is free.
func placed(hosts []rundir.Host, p *rundir.Prepared, c *experiment.Cell, ids map[string]int32) (brokers, controllers []*node, err error) {
	prepared := map[string]rundir.PreparedHost{}
	for _, h := range p.Hosts {
		prepared[h.Name] = h
	}
	used := map[int32]bool{}
	for _, id := range ids {
		used[id] = true
	}
	next := int32(1)
	var quorum []rundir.Host
	for _, h := range hosts {
		if _, ok := prepared[h.Name]; !ok && (h.Has(rundir.Broker) || h.Has(rundir.Controller)) {
			return nil, nil, fmt.Errorf("host %s was not prepared", h.Name)
		}
		if h.Has(rundir.Controller) {
			quorum = append(quorum, h)
		}
		if !h.Has(rundir.Broker) {
			continue
		}
		id, ok := ids[h.Name]
		for ; !ok && used[next]; next++ {
		}
		if !ok {
			id = next
			used[id] = true
		}
		brokers = append(brokers, &node{id: id, host: h, prepared: prepared[h.Name], broker: true, controller: c.Kafka.Mode == "combined"})
	}
	if len(brokers) == 0 {
		return nil, nil, fmt.Errorf("none of the %d hosts is a broker", len(hosts))
	}
	if c.Kafka.Mode == "combined" {
		return brokers, nil, nil
	}
	if len(quorum) == 0 {
		quorum = []rundir.Host{brokers[0].host}
	}
	for i, h := range quorum {
		controllers = append(controllers, &node{id: firstController + int32(i) + 1, host: h, prepared: prepared[h.Name], controller: true})
	}
	return brokers, controllers, nil
}

// voters is the value of controller.quorum.voters.
func voters(brokers, controllers []*node) string {
	var out []string
	for _, n := range append(brokers[:len(brokers):len(brokers)], controllers...) {
		if n.controller {
			out = append(out, fmt.Sprintf("%d@%s", n.id, n.address(controllerPort)))
		}
	}
	return strings.Join(out, ",")
}

// configure fills in where each node keeps its things and what it is asked to be.
func configure(l layout, c *experiment.Cell, clusterID, quorum string, replicas int, nodes []*node) {
	for _, n := range nodes {
		// A directory of its own below the mount point: Kafka refuses what a
		// fresh file system has at its top, lost+found.
		at := n.prepared.DataDir
		if at == "" || !n.broker && n.host.Has(rundir.Broker) {
			at = l.dir() + "/data" // a controller beside a broker leaves it its disk
		}
		n.dir = at + "/" + n.name()
		n.logFile = l.log(n.name(), clusterID)
		n.asked = properties(c, n, quorum, replicas)
	}
}

// properties is a node's server.properties: what krig must set, then what the
// experiment asks.
func properties(c *experiment.Cell, n *node, quorum string, replicas int) map[string]string {
	p := quorumProperties(n, quorum)
	if n.broker {
		maps.Copy(p, brokerDefaults(c, replicas))
	}
	maps.Copy(p, c.Kafka.Broker)
	return p
}

// quorumProperties say who a node is, where it listens, where its data is and
// who its quorum is.
func quorumProperties(n *node, quorum string) map[string]string {
	p := map[string]string{
		"node.id":                        strconv.Itoa(int(n.id)),
		"process.roles":                  n.roles(),
		"controller.quorum.voters":       quorum,
		"controller.listener.names":      "CONTROLLER",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                       n.dir,
	}
	var listeners []string
	if n.broker {
		listeners = append(listeners, "PLAINTEXT://"+n.address(brokerPort))
		p["advertised.listeners"] = listeners[0]
		p["inter.broker.listener.name"] = "PLAINTEXT"
	}
	if n.controller {
		listeners = append(listeners, "CONTROLLER://"+n.address(controllerPort))
	}
	p["listeners"] = strings.Join(listeners, ",")
	return p
}

// brokerDefaults is what krig asks of a broker unless the experiment says
// otherwise: internal topics that fit the cluster, and no waiting where a bench
// would wait for nothing.
func brokerDefaults(c *experiment.Cell, replicas int) map[string]string {
	rf := strconv.Itoa(min(3, replicas))
	p := map[string]string{
		"offsets.topic.replication.factor":         rf,
		"transaction.state.log.replication.factor": rf,
		"transaction.state.log.min.isr":            strconv.Itoa(min(2, replicas)),
		"group.initial.rebalance.delay.ms":         "0",
		"log.segment.delete.delay.ms":              "1000",
		// Kafka first deletes half a minute after it started, which every first
		// load would wait for. Versions without this setting ignore it.
		"log.initial.task.delay.ms": "500",
	}
	if v, _ := experiment.ParseVersion(c.Kafka.Version); v.AtLeast(4, 0) {
		p["share.coordinator.state.topic.replication.factor"] = rf
		p["share.coordinator.state.topic.min.isr"] = strconv.Itoa(min(2, replicas))
	}
	if !c.Bench.Records.Set { // its topics are kept small by a retention of their own
		p["log.retention.check.interval.ms"] = "5000"
	}
	return p
}
