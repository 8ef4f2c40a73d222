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
	out := checkVersion(c)
	out = append(out, checkSource(c.Kafka.Source)...)
	out = append(out, checkKeys(c.Kafka.Broker)...)
	out = append(out, checkJVM(c)...)
	if c.Kafka.Mode == "combined" && (c.Rig.Controllers.Count > 0 || c.Rig.Controllers.On != "") {
		out = append(out, experiment.Problem{
			Path:     "rigs." + c.RigName + ".controllers",
			Reason:   "with mode combined every broker is a controller too",
			Expected: "no controllers, or kafka.mode: kraft",
		})
	}
	return out
}

func checkVersion(c *experiment.Cell) []experiment.Problem {
	v, ok := parseVersion(c.Kafka.Version)
	switch {
	case !ok:
		return []experiment.Problem{{Path: "kafka.version", Reason: fmt.Sprintf("%q is no version of Kafka", c.Kafka.Version), Expected: "three numbers, such as 4.4.0"}}
	case !v.atLeast(3, 3):
		return []experiment.Problem{{Path: "kafka.version", Reason: "KRaft is a preview before Kafka 3.3, and mode zookeeper is not built yet", Expected: "3.3.0 or later"}}
	}
	return nil
}

func checkSource(s experiment.Source) []experiment.Problem {
	switch {
	case s.Archive != "" && s.Directory != "":
		return []experiment.Problem{{Path: "kafka.source", Reason: "it names both an archive and a directory", Expected: "one of the two"}}
	case s.Archive != "" && len(s.SHA512) != 128:
		return []experiment.Problem{{Path: "kafka.source.sha512", Reason: "an archive is used only with its SHA-512", Expected: "128 hexadecimal digits"}}
	case s.Archive == "" && s.SHA512 != "":
		return []experiment.Problem{{Path: "kafka.source.sha512", Reason: "it belongs to an archive, and there is none", Expected: "archive beside it"}}
	}
	return nil
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

// checkJVM refuses flags that krig sets by other keys, and a heap that the host
// cannot hold.
func checkJVM(c *experiment.Cell) []experiment.Problem {
	var out []experiment.Problem
	for _, f := range c.Kafka.JVM.Flags {
		switch {
		case strings.HasPrefix(f, "-Xmx"), strings.HasPrefix(f, "-Xms"):
			out = append(out, experiment.Problem{Path: "kafka.jvm.flags", Reason: f + " sets the heap", Expected: "kafka.jvm.heap"})
		case !strings.HasPrefix(f, "-") || f == "-cp" || f == "-jar" || strings.HasPrefix(f, "-classpath") || strings.HasPrefix(f, "--class-path"):
			out = append(out, experiment.Problem{Path: "kafka.jvm.flags", Reason: fmt.Sprintf("%q is no flag of the Java virtual machine that may be added", f), Expected: "flags such as -XX:+UseZGC"})
		}
	}
	if m := c.Rig.Brokers.Memory; m > 0 && c.Kafka.JVM.Heap >= m {
		out = append(out, experiment.Problem{
			Path:     "kafka.jvm.heap",
			Reason:   fmt.Sprintf("%d MiB of heap do not fit into hosts of %d MiB", c.Kafka.JVM.Heap>>20, m>>20),
			Expected: "less than the brokers' memory",
		})
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
