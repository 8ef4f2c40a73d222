package provision

import (
	"fmt"
	"slices"
	"strings"

	"krig/internal/experiment"
)

// Check tells what a cell asks that this stage cannot do, without contacting
// anything.
func Check(c *experiment.Cell) []experiment.Problem {
	return append(checkKeys(c.Kafka.Broker), checkFlags(c.Kafka.JVM.Flags)...)
}

// owned are the broker settings that krig makes itself, and why.
var owned = map[string]string{
	"node.id":                             "krig numbers the nodes",
	"broker.id":                           "krig numbers the nodes",
	"broker.id.generation.enable":         "krig numbers the nodes",
	"reserved.broker.max.id":              "krig numbers the nodes",
	"process.roles":                       "kafka.mode and the rig's pools say which roles run where",
	"listeners":                           "brokers listen on their hosts' internal addresses",
	"advertised.listeners":                "brokers listen on their hosts' internal addresses",
	"early.start.listeners":               "brokers listen on their hosts' internal addresses",
	"listener.security.protocol.map":      "listeners are plain text; security is not built yet",
	"inter.broker.listener.name":          "brokers have one listener for all",
	"security.inter.broker.protocol":      "brokers have one listener for all",
	"control.plane.listener.name":         "brokers have one listener for all",
	"controller.listener.names":           "the quorum is krig's",
	"controller.quorum.voters":            "the quorum is krig's",
	"controller.quorum.bootstrap.servers": "the quorum is krig's",
	"zookeeper.connect":                   "mode zookeeper is not built yet",
	"log.dir":                             "data goes to the host's data disk",
	"log.dirs":                            "data goes to the host's data disk",
	"metadata.log.dir":                    "data goes to the host's data disk",
}

// checkKeys refuses the settings that krig makes itself. Whether the version
// knows the others it is asked before anything starts.
func checkKeys(keys map[string]string) []experiment.Problem {
	var out []experiment.Problem
	for _, k := range sortedKeys(keys) {
		if why := owned[k]; why != "" {
			out = append(out, experiment.Problem{Path: "kafka.broker." + k, Reason: "it may not be set: " + why, Expected: "no such key"})
		}
	}
	return out
}

// runners are flags of java that say what it runs.
var runners = []string{"-cp", "-classpath", "--class-path", "-jar", "-m", "--module", "-version", "--version", "-help", "--help"}

// checkFlags refuses what is no flag, what contradicts the heap, and what would
// run something else than Kafka.
func checkFlags(flags []string) []experiment.Problem {
	var out []experiment.Problem
	for _, f := range flags {
		p := experiment.Problem{Path: "kafka.jvm.flags"}
		name, _, _ := strings.Cut(f, "=")
		switch {
		case strings.HasPrefix(f, "-Xmx"), strings.HasPrefix(f, "-Xms"):
			p.Reason, p.Expected = fmt.Sprintf("%q would contradict the heap", f), "kafka.jvm.heap instead"
		case !strings.HasPrefix(f, "-") || strings.ContainsAny(f, "\n\r\x00"):
			p.Reason, p.Expected = fmt.Sprintf("%q is not a flag", f), "flags of java, such as -XX:+UseZGC"
		case slices.Contains(runners, name):
			p.Reason, p.Expected = fmt.Sprintf("%q may not be set: krig says what runs", f), "flags of the virtual machine, such as -XX:+UseZGC"
		default:
			continue
		}
		out = append(out, p)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
