package provision

import (
	"path"

	"krig/internal/rundir"
)

// Below these two directories lies all that krig puts on hosts; each run has
// one of its own in each, and nothing is ever removed outside of them.
const (
	homes  = "/opt/krig"
	mounts = "/var/lib/krig"
)

const (
	brokerPort     = 9092
	controllerPort = 9093
)

// Files below a layout's nodes.
const (
	configFile  = "server.properties" // of each node
	loggingFile = "log4j.properties"  // of all
)

// layout is where a run's things are on hosts.
type layout struct{ short string }

func layoutOf(run *rundir.Run) layout { return layout{run.Short} }

// dir is krig's own directory.
func (l layout) dir() string { return path.Join(homes, l.short) }

// state is the directory of mount points.
func (l layout) state() string { return path.Join(mounts, l.short) }

// data is the mount point of the data disk.
func (l layout) data() string { return path.Join(l.state(), "data") }

// agent is the path of krig-agent.
func (l layout) agent() string { return path.Join(l.dir(), "krig-agent") }

// dist is the directory with the jars of one distribution.
func (l layout) dist(id string) string { return path.Join(l.dir(), "dist", id) }

// nodes is the directory with what nodes are started with.
func (l layout) nodes() string { return path.Join(l.dir(), "nodes") }

// config is the server.properties of a node. It is the one argument by which
// the node's process is known on its host.
func (l layout) config(node string) string {
	return path.Join(l.nodes(), node, configFile)
}

// logging is the configuration of a host's logging.
func (l layout) logging() string { return path.Join(l.nodes(), loggingFile) }

// log is the log file of a node of a cluster.
func (l layout) log(node, cluster string) string {
	return path.Join(l.dir(), "logs", node+"."+cluster+".log")
}

// label names the file system on a data disk: at most 12 bytes, as XFS allows.
func (l layout) label() string { return "krig-" + l.short }
