package provision

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"krig/internal/kafka"
	"krig/internal/remote"
)

//go:embed inspect.sh
var inspectScript string

// logDir is what a node's log directory holds before the node is started.
type logDir struct {
	exists bool
	meta   map[string]string // meta.properties; nil when there is none
	names  []string
}

// inspect looks into the log directories of a host's nodes.
func inspect(ctx context.Context, c *remote.Conn, dirs []string) (map[string]logDir, error) {
	out, err := runScript(ctx, c, inspectScript, dirs...)
	if err != nil {
		return nil, fmt.Errorf("looking into log directories: %w", err)
	}
	return readLogDirs(out), nil
}

func readLogDirs(text string) map[string]logDir {
	dirs := map[string]logDir{}
	var at string
	for line := range strings.Lines(text) {
		word, value, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		d := dirs[at]
		switch word {
		case "dir":
			at = value
			d = logDir{exists: true}
		case "meta":
			if d.meta == nil {
				d.meta = map[string]string{}
			}
			for k, v := range kafka.ReadProperties(value) {
				d.meta[k] = v
			}
		case "name":
			d.names = append(d.names, value)
		default:
			continue
		}
		dirs[at] = d
	}
	return dirs
}

// What a log directory means for a node that shall use it.
type verdict int

const (
	fresh verdict = iota // nothing of Kafka's: to be formatted
	ours                 // formatted for this node of this cluster
	stop                 // somebody else's
)

// judgeMeta compares a log directory's meta.properties with the cluster and
// node that shall use it, and says what is wrong.
func judgeMeta(meta map[string]string, cluster string, id int32) (verdict, string) {
	if meta == nil {
		return fresh, ""
	}
	node, kraft := meta["node.id"]
	if !kraft || meta["version"] == "0" {
		return stop, fmt.Sprintf("a broker of ZooKeeper's time (broker.id %s), not KRaft", orNone(meta["broker.id"]))
	}
	var wrong []string
	if got := meta["cluster.id"]; got != cluster {
		wrong = append(wrong, fmt.Sprintf("cluster %s instead of %s", orNone(got), cluster))
	}
	if node != strconv.Itoa(int(id)) {
		wrong = append(wrong, fmt.Sprintf("node %s instead of %d", node, id))
	}
	if len(wrong) > 0 {
		return stop, "it belongs to " + strings.Join(wrong, " and ")
	}
	return ours, ""
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

var topicPartition = regexp.MustCompile(`^.+-\d+$|^.+\.[0-9a-f]{32}-(delete|future|stray)$`)

// kafkaFiles are the files that Kafka itself keeps at the top of a log directory.
var kafkaFiles = map[string]bool{
	".lock": true, ".kafka_cleanshutdown": true, "meta.properties": true, "bootstrap.checkpoint": true,
	"cleaner-offset-checkpoint": true, "recovery-point-offset-checkpoint": true,
	"log-start-offset-checkpoint": true, "replication-offset-checkpoint": true,
}

// strangers are the names in a log directory over which Kafka would die: what
// is neither a partition nor a file of Kafka's own, such as lost+found. A
// .snapshot is the file server's own, hidden from Kafka, and never to be touched.
func strangers(names []string) []string {
	var out []string
	for _, n := range names {
		if n == "." || n == ".." || n == ".snapshot" || kafkaFiles[n] || topicPartition.MatchString(n) {
			continue
		}
		out = append(out, n)
	}
	return out
}
