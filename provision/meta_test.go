package provision

import (
	"os"
	"slices"
	"strings"
	"testing"

	"krig/internal/kafka"
)

func readCase(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parts splits a case file at its --- lines.
func parts(t testing.TB, name string) []string {
	return strings.Split(readCase(t, name), "\n---\n")
}

// Case 77: disks that carry another cluster's or node's meta.properties.
func TestJudgeMeta(t *testing.T) {
	const cluster = "iDltus5U28ha2T-MXkID4g"
	file := func(n string) map[string]string {
		return kafka.ReadProperties(readCase(t, "kafka/77-meta-broker-"+n+".properties"))
	}
	for _, tt := range []struct {
		name string
		meta map[string]string
		id   int32
		want verdict
		says string
	}{
		{"good", file("1"), 1, ours, ""},
		{"other cluster", file("2"), 2, stop, "it belongs to cluster dELzAUqQ8QRErdRu0sJVlQ instead of iDltus5U28ha2T-MXkID4g"},
		{"ZooKeeper's time", file("3"), 3, stop, "a broker of ZooKeeper's time (broker.id 1007), not KRaft"},
		{"other node", file("1"), 4, stop, "it belongs to node 1 instead of 4"},
		{"other node and cluster", file("2"), 4, stop, "it belongs to cluster dELzAUqQ8QRErdRu0sJVlQ instead of iDltus5U28ha2T-MXkID4g and node 2 instead of 4"},
		{"nothing", nil, 1, fresh, ""},
		{"empty", map[string]string{}, 1, stop, "a broker of ZooKeeper's time (broker.id none), not KRaft"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, says := judgeMeta(tt.meta, cluster, tt.id)
			if got != tt.want || says != tt.says {
				t.Errorf("judgeMeta = %v, %q; want %v, %q", got, says, tt.want, tt.says)
			}
		})
	}
}

// Case 78: what may lie in a log directory, and what Kafka would die over.
func TestStrangers(t *testing.T) {
	names := strings.Split(strings.TrimSpace(readCase(t, "kafka/78-logdir-ls.txt")), "\n")[1:]
	if got, want := strangers(names), []string{"lost+found", "notes"}; !slices.Equal(got, want) {
		t.Errorf("strangers = %q, want %q", got, want)
	}
	fine := []string{"__cluster_metadata-0", "bootstrap.checkpoint", "t-3", "a.b-0.0123456789abcdef0123456789abcdef-future", ".kafka_cleanshutdown"}
	if got := strangers(fine); len(got) > 0 {
		t.Errorf("strangers = %q, want none", got)
	}
}

// Cases 77 and 79: the words with which Kafka and its virtual machine die.
func TestCause(t *testing.T) {
	jvm, broker := parts(t, "kafka/79-jvm-stderr.txt"), parts(t, "kafka/77-broker-errors.log")
	for _, tt := range []struct{ name, log, want string }{
		{"flag removed from newer Java", jvm[0], "this Java does not know the flag -XX:PrintGCDateStamps: change kafka.jvm.flags"},
		{"flag that older Java has not", jvm[1], "this Java does not know the flag -Xlog:gc*:file=/opt/kafka/logs/kafkaServer-gc.log:time,tags:filecount=10,filesize=100M: change kafka.jvm.flags"},
		{"Java too old", jvm[2], "this Kafka needs Java 17, the host's Java is 11"},
		{"node id", broker[0], "its disk belongs to node 207, not to 4"},
		{"formatted", broker[1], "/data/kafka is formatted already: whose it is must be looked at first"},
		{"cluster id", broker[2], "its disk belongs to cluster dELzAUqQ8QRErdRu0sJVlQ, not to iDltus5U28ha2T-MXkID4g"},
		{"cluster id, ZooKeeper", broker[3], "its disk belongs to cluster 6fEUWNsYB97BMJLOInorFg, not to vPQqgRVKPUduKKTqXYU2qA"},
		{"port", "java.net.BindException: Address already in use", "another process holds its port"},
		{"two collectors", "Error occurred during initialization of VM\nConflicting collector combinations in option list; please refer to the release notes\nError: Could not create the Java Virtual Machine.", "kafka.jvm.flags choose two garbage collectors"},
		{"settings", "[x] ERROR Exiting\norg.apache.kafka.common.config.ConfigException: Invalid value many for configuration num.io.threads: Not a number\n\tat x", "it refuses its settings: Invalid value many for configuration num.io.threads: Not a number"},
		{"heap", "Invalid maximum heap size: -Xmx99999999999k\nError: Could not create", "Invalid maximum heap size: -Xmx99999999999k: change kafka.jvm.heap"},
		{"lost+found", "Found directory /data/lost+found, 'lost+found' is not in the form of topic-partition", "/data/lost+found holds lost+found, which is not Kafka's"},
		{"disk full", "java.io.IOException: No space left on device", "its disk is full"},
		{"nothing", "[2024-05-01] INFO started (kafka.server.KafkaServer)", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := cause(tt.log); got != tt.want {
				t.Errorf("cause = %q, want %q", got, tt.want)
			}
		})
	}
}

// Case 79: java -version.
func TestJavaVersion(t *testing.T) {
	jvm := parts(t, "kafka/79-jvm-stderr.txt")
	for _, tt := range []struct {
		text  string
		full  string
		major int
	}{
		{jvm[3], "17.0.15", 17},
		{jvm[4], "1.8.0_181", 8},
		{`openjdk version "21-ea" 2023-09-19`, "21-ea", 21},
		{`openjdk version "25" 2025-09-16`, "25", 25},
		{"sh: java: not found", "", 0},
	} {
		if full, major := javaVersion(tt.text); full != tt.full || major != tt.major {
			t.Errorf("javaVersion(%q) = %q, %d; want %q, %d", tt.text, full, major, tt.full, tt.major)
		}
	}
}

func TestReadLogDirs(t *testing.T) {
	got := readLogDirs("dir\t/d/one\nmeta\t#comment\nmeta\tnode.id=1\nmeta\tcluster.id=abc==\nname\tmeta.properties\ndir\t/d/two\nname\tlost+found\n")
	one, two := got["/d/one"], got["/d/two"]
	if one.meta["node.id"] != "1" || one.meta["cluster.id"] != "abc==" || !slices.Equal(one.names, []string{"meta.properties"}) {
		t.Errorf("one = %+v", one)
	}
	if !two.exists || two.meta != nil || !slices.Equal(two.names, []string{"lost+found"}) {
		t.Errorf("two = %+v", two)
	}
	if got["/d/three"].exists {
		t.Error("a directory that is not there is said to exist")
	}
}

func FuzzReadLogDirs(f *testing.F) {
	f.Add("dir\t/d\nmeta\tnode.id=1\nname\tx-0\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range readLogDirs(text) {
			judgeMeta(d.meta, "c", 1)
			strangers(d.names)
		}
	})
}

func FuzzCause(f *testing.F) {
	for _, name := range []string{"kafka/79-jvm-stderr.txt", "kafka/77-broker-errors.log"} {
		for _, p := range parts(f, name) {
			f.Add(p)
		}
	}
	f.Fuzz(func(t *testing.T, text string) { cause(text) })
}
