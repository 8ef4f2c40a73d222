package bench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"krig/internal/experiment"
)

// perftestHeap is the heap of each of Kafka's performance tools.
const perftestHeap = "256m"

// transactionLength is how long the producer tool's transactions last.
const transactionLength = 3 * time.Second

// toolVersion is the release of Kafka that a performance tool comes from:
// class, options and defaults follow it, never the release on this machine.
type toolVersion struct{ experiment.Version }

func parseToolVersion(s string) (toolVersion, error) {
	v, ok := experiment.ParseVersion(s)
	if !ok {
		return toolVersion{}, fmt.Errorf("%q is no version of Kafka", s)
	}
	return toolVersion{v}, nil
}

// newOptions tells whether the tools have the options of KIP-1147, and their
// own warm-up and reporting interval.
func (v toolVersion) newOptions() bool { return v.AtLeast(4, 2) }

// jvm is where a worker host has what a tool needs.
type jvm struct {
	java, jars, logging string // program; directory of jars; directory with the logging configurations
}

// command is a tool's whole command line.
func (j jvm) command(class string, args []string) []string {
	return append([]string{
		j.java, "-Xms" + perftestHeap, "-Xmx" + perftestHeap,
		"-Duser.language=en", "-Duser.timezone=UTC", "-XX:-UsePerfData",
		"-Dlog4j.configuration=file:" + j.logging + "/" + log4jOld,
		"-Dlog4j2.configurationFile=" + j.logging + "/" + log4jNew,
		"-cp", j.jars + "/*", class,
	}, args...)
}

// The logging configurations, by file: standard output is the results' alone.
const (
	log4jOld = "log4j.properties"
	log4jNew = "log4j2.properties"
)

func toolLogging() map[string]string {
	return map[string]string{
		log4jOld: "log4j.rootLogger=WARN, err\n" +
			"log4j.appender.err=org.apache.log4j.ConsoleAppender\nlog4j.appender.err.Target=System.err\n" +
			"log4j.appender.err.layout=org.apache.log4j.PatternLayout\nlog4j.appender.err.layout.ConversionPattern=%p %m (%c)%n\n",
		log4jNew: "status = error\nappender.err.type = Console\nappender.err.name = err\nappender.err.target = SYSTEM_ERR\n" +
			"appender.err.layout.type = PatternLayout\nappender.err.layout.pattern = %p %m (%c)%n\n" +
			"rootLogger.level = warn\nrootLogger.appenderRef.err.ref = err\n",
	}
}

// producerSpec is one run of the producer tool.
type producerSpec struct {
	bootstrap  []string
	topic      string
	records    int64
	size       int64  // B of each record's value
	warmup     int64  // of records, the first that do not count; only where the tool has its own
	throughput string // records/s; "-1" is as fast as it goes
	config     map[string]string
	configFile string // holds what config's values the command line cannot carry; "" without any
	// transaction is the transactional id; "" without transactions.
	transaction string
}

// reporting is how often the tool prints an interval.
func (v toolVersion) reporting() time.Duration {
	if v.newOptions() {
		return time.Second
	}
	return 5 * time.Second
}

// producer is the class and arguments of a run of the producer tool.
func (v toolVersion) producer(s producerSpec) (class string, args []string) {
	class = "org.apache.kafka.tools.ProducerPerformance"
	bootstrap := strings.Join(s.bootstrap, ",")
	config, file := "--producer-props", "--producer.config"
	if v.newOptions() {
		config, file = "--command-property", "--command-config"
		args = []string{"--bootstrap-server", bootstrap}
	}
	args = append(args, "--topic", s.topic, "--num-records", strconv.FormatInt(s.records, 10),
		"--record-size", strconv.FormatInt(s.size, 10), "--throughput", s.throughput, "--print-metrics")
	if v.newOptions() {
		args = append(args, "--reporting-interval", strconv.FormatInt(v.reporting().Milliseconds(), 10))
		if s.warmup > 0 {
			args = append(args, "--warmup-records", strconv.FormatInt(s.warmup, 10))
		}
	}
	if s.transaction != "" { // before 4.0 either alone does nothing useful
		args = append(args, "--transactional-id", s.transaction,
			"--transaction-duration-ms", strconv.FormatInt(transactionLength.Milliseconds(), 10))
	}
	if s.configFile != "" {
		args = append(args, file, s.configFile)
	}
	var properties []string
	if !v.newOptions() {
		properties = append(properties, "bootstrap.servers="+bootstrap)
	}
	inline, _ := splitConfig(s.config)
	for _, key := range slices.Sorted(maps.Keys(inline)) {
		properties = append(properties, key+"="+inline[key])
	}
	if len(properties) > 0 { // last: it takes all that follows
		args = append(append(args, config), properties...)
	}
	return class, args
}

// splitConfig tells apart what the producer tool's command line can carry and
// what must stand in a file: the tool splits each property at every equals sign.
func splitConfig(config map[string]string) (inline, file map[string]string) {
	inline, file = map[string]string{}, map[string]string{}
	for key, value := range config {
		if key == "transactional.id" {
			continue // has options of its own
		}
		if value == "" || strings.ContainsAny(value, "=\n") {
			file[key] = value
		} else {
			inline[key] = value
		}
	}
	return inline, file
}

// consumerSpec is one run of the consumer tool.
type consumerSpec struct {
	bootstrap  []string
	topic      string
	group      string
	records    int64
	timeout    time.Duration // without a record, after which it gives up
	config     map[string]string
	configFile string // holds the settings; "" without any
}

// consumerOptions are consumer settings that the tool overwrites with options
// of its own.
func consumerOptions() map[string]string {
	return map[string]string{"max.partition.fetch.bytes": "--fetch-size", "receive.buffer.bytes": "--socket-buffer-size"}
}

// consumer is the class and arguments of a run of the consumer tool.
func (v toolVersion) consumer(s consumerSpec) (class string, args []string) {
	class, records, file := "org.apache.kafka.tools.ConsumerPerformance", "--messages", "--consumer.config"
	if !v.AtLeast(3, 5) {
		class = "kafka.tools.ConsumerPerformance"
	}
	if v.newOptions() {
		records, file = "--num-records", "--command-config"
	}
	args = []string{"--bootstrap-server", strings.Join(s.bootstrap, ","), "--topic", s.topic, "--group", s.group,
		records, strconv.FormatInt(s.records, 10), "--timeout", strconv.FormatInt(s.timeout.Milliseconds(), 10)}
	options := consumerOptions()
	for _, key := range slices.Sorted(maps.Keys(options)) {
		if value, ok := s.config[key]; ok {
			args = append(args, options[key], value)
		}
	}
	if s.configFile != "" {
		args = append(args, file, s.configFile)
	}
	return class, args
}
