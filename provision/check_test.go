package provision

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"krig/internal/experiment"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kafka experiment.Kafka
		want  []string
	}{
		{"nothing against it", experiment.Kafka{Broker: map[string]string{"num.io.threads": "8"}, JVM: experiment.JVM{Flags: []string{"-XX:+UseZGC"}}}, nil},
		{"krig's own settings", experiment.Kafka{Broker: map[string]string{"listeners": "x", "log.dirs": "/d", "node.id": "4"}}, []string{
			"kafka.broker.listeners: it may not be set: brokers listen on their hosts' internal addresses (no such key)",
			"kafka.broker.log.dirs: it may not be set: data goes to the host's data disk (no such key)",
			"kafka.broker.node.id: it may not be set: krig numbers the nodes (no such key)",
		}},
		{"another class path", experiment.Kafka{JVM: experiment.JVM{Flags: []string{"-cp", "--class-path=/x"}}}, []string{
			`kafka.jvm.flags: "-cp" may not be set: krig says what runs (flags of the virtual machine, such as -XX:+UseZGC)`,
			`kafka.jvm.flags: "--class-path=/x" may not be set: krig says what runs (flags of the virtual machine, such as -XX:+UseZGC)`,
		}},
		{"another heap, and no flags", experiment.Kafka{JVM: experiment.JVM{Flags: []string{"-Xmx1g", "-Xms1g", "UseZGC", "-Da=1\n-cp"}}}, []string{
			`kafka.jvm.flags: "-Xmx1g" would contradict the heap (kafka.jvm.heap instead)`,
			`kafka.jvm.flags: "-Xms1g" would contradict the heap (kafka.jvm.heap instead)`,
			`kafka.jvm.flags: "UseZGC" is not a flag (flags of java, such as -XX:+UseZGC)`,
			`kafka.jvm.flags: "-Da=1\n-cp" is not a flag (flags of java, such as -XX:+UseZGC)`,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range Check(&experiment.Cell{Kafka: tt.kafka}) {
				got = append(got, fmt.Sprintf("%s: %s (%s)", p.Path, p.Reason, p.Expected))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("Check:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestOwns(t *testing.T) {
	l := layout{"abc123"}
	for _, dir := range []string{"/opt/krig/abc123/data/broker-1", "/var/lib/krig/abc123/data/broker-1"} {
		if !l.owns(dir) {
			t.Errorf("%s is krig's", dir)
		}
	}
	for _, dir := range []string{"", "/", "/data", "/opt/krig/abc123", "/opt/krig/abc124/x", "/opt/krig/abc123/../x", "/opt/krig/abc123x/y", "opt/krig/abc123/x"} {
		if l.owns(dir) {
			t.Errorf("%q is not krig's to remove", dir)
		}
	}
	if (layout{}).owns("/opt/krig//x") {
		t.Error("a run without an id owns nothing")
	}
}
