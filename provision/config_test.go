package provision

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"krig/internal/experiment"
	"krig/internal/kafka"
	"krig/internal/rundir"
)

var update = flag.Bool("update", false, "write the golden files anew")

// testCell is a cell with Kafka's defaults and a bench that ends by records.
func testCell(mode string) *experiment.Cell {
	return &experiment.Cell{
		ID: "c1", RigName: "lab",
		Kafka: experiment.Kafka{Version: "4.4.0", Mode: mode, JVM: experiment.JVM{Heap: 1 << 30}},
		Bench: experiment.Bench{
			Topics: experiment.Count{N: 1, Set: true}, Partitions: experiment.Count{N: 6, Set: true},
			Records: experiment.Count{N: 1000, Set: true}, ReplicationFactor: 1,
		},
	}
}

// testHosts makes hosts b1 ... and what was prepared of them.
func testHosts(roles ...string) ([]rundir.Host, *rundir.Prepared) {
	var hosts []rundir.Host
	p := &rundir.Prepared{}
	for i, r := range roles {
		h := rundir.Host{Name: fmt.Sprintf("h%d", i+1), Internal: fmt.Sprintf("10.0.0.%d", i+1), Arch: "amd64"}
		for _, c := range r {
			h.Roles = append(h.Roles, map[rune]rundir.Role{'b': rundir.Broker, 'c': rundir.Controller, 'w': rundir.Worker}[c])
		}
		ph := rundir.PreparedHost{Name: h.Name, Dir: "/opt/krig/abc123", Facts: rundir.Facts{FreeSpace: 100 << 30}}
		if h.Has(rundir.Broker) {
			h.Disks = []rundir.Disk{{Device: "/dev/loop1", Size: 8 << 30}}
			ph.DataDir = "/var/lib/krig/abc123/data"
		}
		hosts = append(hosts, h)
		p.Hosts = append(p.Hosts, ph)
	}
	return hosts, p
}

func TestPlaced(t *testing.T) {
	for _, tt := range []struct {
		name, mode string
		roles      []string
		ids        map[string]int32
		brokers    string
		quorum     string
		err        string
	}{
		{"a controller beside the first broker", "kraft", []string{"b", "b", "w"}, nil, "1@h1 2@h2", "3001@10.0.0.1:9093", ""},
		{"controllers of their own", "kraft", []string{"b", "b", "c", "c", "c"}, nil, "1@h1 2@h2", "3001@10.0.0.3:9093,3002@10.0.0.4:9093,3003@10.0.0.5:9093", ""},
		{"controllers on brokers", "kraft", []string{"bc", "bc", "bc"}, nil, "1@h1 2@h2 3@h3", "3001@10.0.0.1:9093,3002@10.0.0.2:9093,3003@10.0.0.3:9093", ""},
		{"combined", "combined", []string{"b", "b", "b", "w"}, nil, "1@h1 2@h2 3@h3", "1@10.0.0.1:9093,2@10.0.0.2:9093,3@10.0.0.3:9093", ""},
		{"one joins", "kraft", []string{"b", "b", "b"}, map[string]int32{"h1": 1, "h3": 2}, "1@h1 3@h2 2@h3", "3001@10.0.0.1:9093", ""},
		{"the lowest free number", "kraft", []string{"b", "b"}, map[string]int32{"h1": 3}, "3@h1 1@h2", "3001@10.0.0.1:9093", ""},
		{"no broker", "kraft", []string{"w"}, nil, "", "", "none of the 1 hosts is a broker"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hosts, p := testHosts(tt.roles...)
			brokers, controllers, err := placed(hosts, p, testCell(tt.mode), tt.ids)
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Fatalf("placed: %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, b := range brokers {
				got = append(got, fmt.Sprintf("%d@%s", b.id, b.host.Name))
			}
			if s := strings.Join(got, " "); s != tt.brokers {
				t.Errorf("brokers %s, want %s", s, tt.brokers)
			}
			if q := voters(brokers, controllers); q != tt.quorum {
				t.Errorf("voters %s, want %s", q, tt.quorum)
			}
		})
	}
	hosts, _ := testHosts("b")
	if _, _, err := placed(hosts, &rundir.Prepared{}, testCell("kraft"), nil); err == nil || err.Error() != "host h1 was not prepared" {
		t.Errorf("placed on a host that was not prepared: %v", err)
	}
}

// Every node's server.properties against the golden files. log.dirs is a
// directory below the mount point (case 78).
func TestProperties(t *testing.T) {
	own := testCell("kraft")
	own.Kafka.Broker = map[string]string{"num.io.threads": "8", "offsets.topic.replication.factor": "1", "ssl.engine": "a\\b=ü\nc"}
	endless := testCell("kraft")
	endless.Bench.Records = experiment.Count{}
	older := testCell("kraft")
	older.Kafka.Version = "3.9.1"
	for _, tt := range []struct {
		name  string
		cell  *experiment.Cell
		roles []string
	}{
		{"three-brokers", own, []string{"b", "b", "b"}},
		{"no-end-by-records", endless, []string{"b", "b"}},
		{"combined", testCell("combined"), []string{"b"}},
		{"controllers-apart-3.9", older, []string{"b", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			hosts, p := testHosts(tt.roles...)
			brokers, controllers, err := placed(hosts, p, tt.cell, nil)
			if err != nil {
				t.Fatal(err)
			}
			nodes := append(controllers, brokers...)
			configure(layout{"abc123"}, tt.cell, "id", voters(brokers, controllers), len(brokers), nodes)
			var b strings.Builder
			for _, n := range nodes {
				fmt.Fprintf(&b, "# %s on %s, log %s\n%s\n", n.name(), n.host.Name, n.logFile, kafka.WriteProperties(n.asked))
			}
			golden(t, "properties-"+tt.name+".txt", b.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s", file, got)
	}
}

func TestJVMFlags(t *testing.T) {
	v4 := []string{"log4j-core-2.25.5.jar"}
	v3 := []string{"reload4j-1.2.25.jar"}
	jvm := experiment.JVM{Heap: 512 << 20}
	zgc := experiment.JVM{Heap: 1 << 30, Flags: []string{"-XX:+UseZGC", "-Dx=y"}}
	for _, tt := range []struct {
		name      string
		broker    bool
		jvm       experiment.JVM
		jars      []string
		has, lack []string
	}{
		{"broker of 4.x", true, jvm, v4, []string{"-Xms524288k", "-Xmx524288k", "-XX:+UseG1GC", "-Dlog4j2.configurationFile=/l"}, []string{"-Dlog4j.configuration=file:/l"}},
		{"broker of 3.x", true, jvm, v3, []string{"-Dlog4j.configuration=file:/l"}, []string{"-Dlog4j2.configurationFile=/l"}},
		{"another collector", true, zgc, v4, []string{"-XX:+UseZGC", "-Dx=y"}, []string{"-XX:+UseG1GC"}},
		{"controller", false, zgc, v4, []string{"-Xmx262144k", "-XX:+UseG1GC"}, []string{"-XX:+UseZGC", "-Dx=y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := jvmFlags(&node{broker: tt.broker}, tt.jvm, "/l", tt.jars)
			for _, f := range tt.has {
				if !slices.Contains(got, f) {
					t.Errorf("%q lacks %s", got, f)
				}
			}
			for _, f := range tt.lack {
				if slices.Contains(got, f) {
					t.Errorf("%q has %s", got, f)
				}
			}
		})
	}
}
