package provision

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"krig/internal/experiment"
)

// controllerHeap is the heap of a controller that has a process of its own.
const controllerHeap = 256 << 20

// standardFlags are those of Kafka's own start script, so that figures compare
// with brokers started by it, and the time zone.
var standardFlags = []string{
	"-server", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
	"-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15", "-Djava.awt.headless=true",
	"-Duser.timezone=UTC", // so that logs of all hosts are on one time axis
}

var collectorFlag = regexp.MustCompile(`^-XX:\+Use\w*GC$`)

// jvmFlags are the flags of one node's Java virtual machine. logging is the path
// of its log configuration; names are the distribution's jars.
func jvmFlags(n *node, jvm experiment.JVM, logging string, names []string) []string {
	heap := int64(jvm.Heap)
	if !n.broker {
		heap = controllerHeap
	}
	size := strconv.FormatInt(heap>>10, 10) + "k"
	out := append([]string{"-Xms" + size, "-Xmx" + size}, standardFlags...)
	user := jvm.Flags
	if !n.broker {
		user = nil
	}
	if !hasCollector(user) {
		out = append(out, "-XX:+UseG1GC")
	}
	if logCore(names) != "" {
		out = append(out, "-Dlog4j2.configurationFile="+logging)
	} else {
		out = append(out, "-Dlog4j.configuration=file:"+logging)
	}
	return append(out, user...)
}

func hasCollector(flags []string) bool {
	for _, f := range flags {
		if collectorFlag.MatchString(f) {
			return true
		}
	}
	return false
}

const log4j2 = `status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
`

const log4j1 = `log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
`

// logConfig has everything logged to the console, which is the node's log file.
func logConfig(names []string) string {
	if logCore(names) != "" {
		return log4j2
	}
	return log4j1
}

// deaths are the causes of a Kafka's end that its own words name, in the order
// in which they are looked for. In the reason $1, $2 are what the words gave.
var deaths = []struct {
	words  *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`class file version (\d+)\.\d+\).*up to (\d+)\.\d+`), ""}, // told by classVersion
	{regexp.MustCompile(`Unrecognized VM option '([^']+)'`), "this Java does not know the flag -XX:$1: change kafka.jvm.flags"},
	{regexp.MustCompile(`Unrecognized option: (\S+)`), "this Java does not know the flag $1: change kafka.jvm.flags"},
	{regexp.MustCompile(`Conflicting collector combinations`), "kafka.jvm.flags choose two garbage collectors"},
	{regexp.MustCompile(`(Invalid (?:maximum|initial) heap size: \S+|Initial heap size set to a larger value[^\n]*)`), "$1: change kafka.jvm.heap"},
	{regexp.MustCompile(`There is insufficient memory for the Java Runtime`), "the host has not enough memory for kafka.jvm.heap"},
	{regexp.MustCompile(`Error: Could not create the Java Virtual Machine`), "the Java virtual machine refused its flags"},
	{regexp.MustCompile(`Could not find or load main class (\S+)`), "the distribution has no class $1"},
	{regexp.MustCompile("Configured (?:node|broker)\\.id `?(\\d+)`? doesn't match stored (?:node|broker)\\.id `?(\\d+)`?"), "its disk belongs to node $2, not to $1"},
	{regexp.MustCompile(`Expected (\S+), but read ([\w-]+)`), "its disk belongs to cluster $2, not to $1"},
	{regexp.MustCompile(`The Cluster ID (\S+) doesn't match stored clusterId Some\((\S+)\)`), "its disk belongs to cluster $2, not to $1"},
	{regexp.MustCompile(`Log directory (\S+) is already formatted`), "$1 is formatted already: whose it is must be looked at first"},
	{regexp.MustCompile(`Address already in use`), "another process holds its port"},
	{regexp.MustCompile(`ConfigException: ([^\n]+)`), "it refuses its settings: $1"},
	{regexp.MustCompile(`No space left on device`), "its disk is full"},
	{regexp.MustCompile(`(java\.lang\.OutOfMemoryError[^\n]*)`), "$1: raise kafka.jvm.heap"},
	{regexp.MustCompile(`Found directory (\S+), '([^']+)' is not in the form`), "$1 holds $2, which is not Kafka's"},
}

// cause is what the end of a log says of why its process died; "" when it does
// not say.
func cause(log string) string {
	for _, d := range deaths {
		m := d.words.FindStringSubmatchIndex(log)
		if m == nil {
			continue
		}
		if d.reason == "" {
			f := d.words.FindStringSubmatch(log)
			return classVersion(f[1], f[2])
		}
		return strings.TrimSpace(string(d.words.ExpandString(nil, d.reason, log, m)))
	}
	return ""
}

// classVersion tells of two class file versions, the needed and the known one,
// in Java's own numbers: 52 is Java 8.
func classVersion(needed, known string) string {
	need, err1 := strconv.Atoi(needed)
	have, err2 := strconv.Atoi(known)
	if err1 != nil || err2 != nil {
		return ""
	}
	return fmt.Sprintf("this Kafka needs Java %d, the host's Java is %d", need-44, have-44)
}
