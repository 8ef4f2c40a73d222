package provision_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"krig/infra/lab/labtest"
	"krig/internal/experiment"
	"krig/internal/kafka"
	"krig/internal/rundir"
	"krig/provision"
)

// Facts of all hosts are looked at before anything is changed, and come in one
// error.
func TestFactsFirst(t *testing.T) {
	r := newRig(t, labtest.Spec{Brokers: 2, Workers: 1})
	r.sh(t, "b1", "setsid sh -c 'python3 -m http.server 9092' >/dev/null 2>&1 &")
	r.sh(t, "b2", "setsid tail -f /dev/null kafka.Kafka >/dev/null 2>&1 &")
	r.sh(t, "w1", "rm -rf /usr/lib/jvm /usr/bin/java; mv /usr/bin/apt-get /usr/bin/apt-get.away")
	r.sh(t, "b1", "until ss -Hltn | grep -q :9092; do sleep 0.1; done; iptables -A INPUT -p tcp --dport 9092 -j DROP")
	r.sh(t, "w1", "ip route add blackhole "+r.hosts[1].Internal)
	r.sh(t, "b2", "until pgrep -xf 'tail -f /dev/null kafka.Kafka'; do sleep 0.1; done")

	_, err := provision.Prepare(t.Context(), r.run, r.fleet, r.hosts, r.cell, nil)
	var facts *provision.FactsError
	if !errors.As(err, &facts) {
		t.Fatalf("Prepare: %v, want a FactsError", err)
	}
	var got []string
	for _, p := range facts.Problems {
		got = append(got, p.Host+" "+p.What)
	}
	for i, want := range []string{
		"b1 port 9092 is taken by python3 (pid ",
		"b2 a Kafka that is not krig's runs, pid ",
		"w1 Java is missing, and not installable: the host has no apt-get",
		"w1 broker b2 cannot be reached at port 9092 of " + r.hosts[1].Internal + ": ",
		"w1 broker b1 cannot be reached at port 9092 of " + r.hosts[0].Internal + ": no answer for 3s",
	} {
		if len(got) != 5 || !strings.HasPrefix(got[i], want) {
			t.Errorf("problem %d of %q, want %q", i+1, got, want)
		}
	}
	for _, h := range r.hosts {
		if left := r.sh(t, h.Name, "ls -d /opt/krig /var/lib/krig 2>/dev/null || true"); left != "" {
			t.Errorf("%s was changed: %s", h.Name, left)
		}
	}
	if standing := r.standing(t); len(standing) > 0 {
		t.Errorf("the ledger has %v", standing)
	}

	r.sh(t, "w1", `printf '#!/bin/sh\necho "E: Unable to fetch some archives" >&2\nexit 100\n' >/usr/bin/apt-get; chmod +x /usr/bin/apt-get`)
	_, err = provision.Prepare(t.Context(), r.run, r.fleet, r.hosts[2:], r.cell, nil)
	if err == nil || !strings.Contains(err.Error(), "w1: ") || !strings.Contains(err.Error(), "installing openjdk-17-jre-headless: E: Unable to fetch some archives") {
		t.Errorf("Prepare with a Java that cannot be installed: %v", err)
	}
	if err := provision.Restore(t.Context(), r.run, r.fleet, r.hosts); err != nil {
		t.Errorf("Restore after a failed Prepare: %v", err)
	}
	r.givenBack(t)
}

// One rig through all of the stage: bare hosts, a cluster that fails, one that
// grows, shrinks, breaks and is mended, another in combined mode, and the hosts
// given back.
func TestCluster(t *testing.T) {
	r := newRig(t, labtest.Spec{Brokers: 2, Workers: 1})
	p, err := provision.Prepare(t.Context(), r.run, r.fleet, r.hosts, r.cell, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkPrepared(t, r, p)
	refused(t, r, p)
	cl := started(t, r, p)
	cl, p = resized(t, r, p, cl)
	cl = mended(t, r, p, cl)
	stopped(t, r, p, cl)
	combined(t, r, p)
	if err := provision.Restore(t.Context(), r.run, r.fleet, r.hosts); err != nil {
		t.Errorf("Restore: %v", err)
	}
	r.givenBack(t)
}

func checkPrepared(t *testing.T, r *rig, p *rundir.Prepared) {
	if len(p.Hosts) != 3 {
		t.Fatalf("%d hosts are prepared, want 3", len(p.Hosts))
	}
	for i, h := range p.Hosts {
		if h.Name != r.hosts[i].Name || h.Facts.JavaMajor < 17 || h.Facts.JVMStart <= 0 || h.Facts.Processors < 1 || h.Facts.Sysstat == "" {
			t.Errorf("%s: facts %+v", h.Name, h.Facts)
		}
		if h.Facts.Offset < -1 || h.Facts.Offset > 1 {
			t.Errorf("%s: the clock of this very machine is %v s away", h.Name, h.Facts.Offset)
		}
		if got := r.sh(t, h.Name, fmt.Sprintf("test -x %s && ls %s/ | grep -c 'kafka_2.13-4.4.0.jar\\|log4j-slf4j-impl'", h.Agent, h.Kafka)); got != "2" {
			t.Errorf("%s: agent and Kafka: %q", h.Name, got)
		}
		want := ""
		if r.hosts[i].Has(rundir.Broker) {
			want = "/var/lib/krig/" + r.run.Short + "/data"
			if got := r.sh(t, h.Name, "findmnt -no SOURCE "+want); got != r.hosts[i].Disks[0].Device {
				t.Errorf("%s: %s is mounted from %s, want %s", h.Name, want, got, r.hosts[i].Disks[0].Device)
			}
		}
		if h.DataDir != want {
			t.Errorf("%s: data directory %q, want %q", h.Name, h.DataDir, want)
		}
	}
	again, err := provision.Prepare(t.Context(), r.run, r.fleet, r.hosts, r.cell, p)
	if err != nil || !reflect.DeepEqual(again, p) {
		t.Errorf("preparing prepared hosts: %+v from %+v, %v", again, p, err)
	}
}

// refused starts clusters that cannot be, and asserts that the reason is told
// at once and nothing is left.
func refused(t *testing.T, r *rig, p *rundir.Prepared) {
	_, err := provision.Start(t.Context(), r.run, r.fleet, r.hosts, p, r.with(func(c *experiment.Cell) {
		c.Kafka.Broker = map[string]string{"num.io.thread": "4"}
	}))
	if err == nil || !strings.Contains(err.Error(), "kafka.broker.num.io.thread: Kafka 4.4.0 has no such setting, the nearest is num.io.threads") {
		t.Errorf("an unknown setting: %v", err)
	}
	_, err = provision.Start(t.Context(), r.run, r.fleet, r.hosts[1:], p, r.with(func(c *experiment.Cell) {
		c.Kafka.Mode = "combined"
		c.Kafka.JVM.Flags = []string{"-XX:+PrintGCDateStamps"}
	}))
	if err == nil || !strings.Contains(err.Error(), "broker-") || !strings.Contains(err.Error(), "this Java does not know the flag -XX:PrintGCDateStamps") {
		t.Errorf("a flag that this Java does not know: %v", err)
	}
	r.clean(t)
	pid := r.sh(t, "b2", "setsid sh -c 'exec python3 -m http.server 9092' >/dev/null 2>&1 & until ss -Hltn | grep -q :9092; do sleep 0.1; done; echo $!")
	_, err = provision.Start(t.Context(), r.run, r.fleet, r.hosts[1:], p, r.with(func(c *experiment.Cell) { c.Kafka.Mode = "combined" }))
	if err == nil || !strings.Contains(err.Error(), "broker-1 on b2 died: another process holds its port; the end of broker-1.") {
		t.Errorf("a port that is taken: %v", err)
	}
	r.sh(t, "b2", "kill "+pid)
	r.clean(t)
	if logs, err := filepath.Glob(r.run.Path("logs", "b2", "broker-1.*.log")); err != nil || len(logs) == 0 {
		t.Errorf("the dead broker's log is not home: %v", err)
	}
}

// clean asserts that no Kafka and no data of one is left on the brokers' hosts.
func (r *rig) clean(t *testing.T) {
	t.Helper()
	for _, host := range []string{"b1", "b2"} {
		if n := r.javas(t, host); n != "0" {
			t.Errorf("%s: %s processes of Java are left", host, n)
		}
		if left := r.sh(t, host, "ls -d /var/lib/krig/*/data/broker-* /opt/krig/*/data/* 2>/dev/null || true"); left != "" {
			t.Errorf("%s: data is left: %s", host, left)
		}
	}
}

func started(t *testing.T, r *rig, p *rundir.Prepared) *rundir.Cluster {
	cell := r.with(func(c *experiment.Cell) {
		c.Kafka.Broker = map[string]string{"num.io.threads": "04", "compression.type": "producer"}
	})
	cl, err := provision.Start(t.Context(), r.run, r.fleet, r.hosts, p, cell)
	if err != nil {
		t.Fatal(err)
	}
	if len(cl.Brokers) != 2 || len(cl.Controllers) != 1 || cl.Controllers[0].Host != "b1" || cl.Version != "4.4.0" || len(cl.Warnings) > 0 {
		t.Fatalf("cluster %+v", cl)
	}
	for _, b := range cl.Brokers {
		if b.Effective["num.io.threads"] != "4" || b.Effective["num.network.threads"] != "3" || b.Effective["offsets.topic.replication.factor"] != "2" {
			t.Errorf("broker %d: effective configuration %v", b.ID, b.Effective)
		}
		if got := r.sh(t, b.Host, fmt.Sprintf("tr '\\0' ' ' </proc/%d/cmdline", b.PID)); !strings.Contains(got, "kafka.Kafka") {
			t.Errorf("broker %d: process %d is %q", b.ID, b.PID, got)
		}
		if want := p.Hosts[0].DataDir + "/" + b.Name; !slices.Equal(b.LogDirs, []string{want}) || b.Name != fmt.Sprintf("broker-%d", b.ID) {
			t.Errorf("broker %d: %s with log directories %s, want %s", b.ID, b.Name, b.LogDirs, want)
		}
	}
	return cl
}

// write puts a record through a cluster and commits an offset, so that the
// consumers' internal topic is in use.
func write(t *testing.T, r *rig, cl *rundir.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client, err := kafka.Client(r.fleet, cl, kgo.AllowAutoTopicCreation())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("x")}).FirstErr(); err != nil {
		t.Fatalf("producing: %v", err)
	}
	adm := kadm.NewClient(client)
	offsets := kadm.Offsets{}
	offsets.AddOffset("t", 0, 1, -1)
	if err := adm.CommitAllOffsets(ctx, "g", offsets); err != nil {
		t.Fatalf("committing an offset: %v", err)
	}
}

// brokerIDs lists the brokers that a cluster itself lists.
func brokerIDs(t *testing.T, r *rig, cl *rundir.Cluster) []int32 {
	t.Helper()
	adm, err := kafka.Admin(r.fleet, cl)
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	list, err := adm.ListBrokers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return list.NodeIDs()
}

// resized has a broker leave, its host given back and prepared again, and a
// broker join.
func resized(t *testing.T, r *rig, p *rundir.Prepared, cl *rundir.Cluster) (*rundir.Cluster, *rundir.Prepared) {
	write(t, r, cl)
	without := []rundir.Host{r.hosts[0], r.hosts[2]}
	one, err := provision.Resize(t.Context(), r.run, r.fleet, without, p, r.cell, cl)
	if err != nil {
		t.Fatalf("shrinking: %v", err)
	}
	if got := brokerIDs(t, r, one); len(one.Brokers) != 1 || !slices.Equal(got, []int32{1}) || len(cl.Brokers) != 2 {
		t.Errorf("after shrinking: brokers %v, the cluster lists %v; before %d", one.Brokers, got, len(cl.Brokers))
	}
	if one.Brokers[0].PID != cl.Brokers[0].PID || one.ID != cl.ID {
		t.Error("the broker that stays was started anew")
	}
	if n := r.javas(t, "b2"); n != "0" {
		t.Errorf("b2: %s processes of Java are left", n)
	}
	write(t, r, one)
	left := &rig{run: r.run, fleet: r.fleet, hosts: r.hosts[1:2]}
	if err := provision.Restore(t.Context(), r.run, r.fleet, left.hosts); err != nil {
		t.Errorf("giving back the host that left: %v", err)
	}
	left.givenBack(t)
	p, err = provision.Prepare(t.Context(), r.run, r.fleet, r.hosts, r.cell, &rundir.Prepared{Hosts: []rundir.PreparedHost{p.Hosts[0], p.Hosts[2]}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := provision.Resize(t.Context(), r.run, r.fleet, r.hosts, p, r.cell, one)
	if err != nil {
		t.Fatalf("growing: %v", err)
	}
	if got := brokerIDs(t, r, two); len(two.Brokers) != 2 || !slices.Equal(got, []int32{1, 2}) {
		t.Errorf("after growing: brokers %v, the cluster lists %v", two.Brokers, got)
	}
	if a, b := two.Brokers[0].Asked, two.Brokers[1].Asked; a["num.io.threads"] != b["num.io.threads"] || b["node.id"] != "2" {
		t.Errorf("the new broker is asked %v, the old one %v", b, a)
	}
	return two, p
}

func mended(t *testing.T, r *rig, p *rundir.Prepared, cl *rundir.Cluster) *rundir.Cluster {
	r.sh(t, "b2", fmt.Sprintf("kill -KILL %d", cl.Brokers[1].PID))
	out, err := provision.Mend(t.Context(), r.run, r.fleet, r.hosts, p, r.cell, cl)
	if err != nil {
		t.Fatalf("mending: %v", err)
	}
	if out.Brokers[1].PID == cl.Brokers[1].PID || out.Brokers[0].PID != cl.Brokers[0].PID || out.Controllers[0].PID != cl.Controllers[0].PID {
		t.Errorf("mended %+v from %+v", out, cl)
	}
	write(t, r, out)
	gone := []rundir.Host{r.hosts[0], r.hosts[2]}
	if _, err := provision.Mend(t.Context(), r.run, r.fleet, gone, p, r.cell, out); err == nil || err.Error() != "b2 is gone, and broker-2 with it" {
		t.Errorf("mending without a host: %v", err)
	}
	return out
}

func stopped(t *testing.T, r *rig, p *rundir.Prepared, cl *rundir.Cluster) {
	if err := provision.Wipe(t.Context(), r.run, r.fleet, cl); err == nil || !strings.Contains(err.Error(), "it must be stopped before its data is wiped") {
		t.Errorf("wiping a cluster that runs: %v", err)
	}
	for range 2 { // the second time there is nothing to stop
		if err := provision.Stop(t.Context(), r.run, r.fleet, cl); err != nil {
			t.Fatalf("stopping: %v", err)
		}
	}
	for _, n := range append(cl.Brokers, cl.Controllers...) {
		text, err := os.ReadFile(r.run.Path("logs", n.Host, filepath.Base(n.LogFile)))
		if err != nil || !strings.Contains(string(text), "started (kafka.server.KafkaRaftServer)") {
			t.Errorf("the log of node %d is not home, or not Kafka's: %v", n.ID, err)
		}
	}
	_, err := provision.Start(t.Context(), r.run, r.fleet, r.hosts, p, r.cell)
	var facts *provision.FactsError
	if !errors.As(err, &facts) || len(facts.Problems) != 3 || !strings.Contains(err.Error(), "it belongs to cluster "+cl.ID+" instead of") {
		t.Errorf("starting on disks of another cluster: %v", err)
	}
	other := *cl
	other.Brokers = []rundir.Node{{ID: 1, Name: "broker-1", Host: "b1", LogDirs: []string{"/etc"}}}
	if err := provision.Wipe(t.Context(), r.run, r.fleet, &other); err == nil || !strings.Contains(err.Error(), "/etc is outside of krig's own directories") {
		t.Errorf("wiping /etc: %v", err)
	}
	if err := provision.Wipe(t.Context(), r.run, r.fleet, cl); err != nil {
		t.Fatalf("wiping: %v", err)
	}
	r.clean(t)
}

func combined(t *testing.T, r *rig, p *rundir.Prepared) {
	cell := r.with(func(c *experiment.Cell) { c.Kafka.Mode = "combined" })
	cl, err := provision.Start(t.Context(), r.run, r.fleet, r.hosts, p, cell)
	if err != nil {
		t.Fatalf("starting in combined mode: %v", err)
	}
	if len(cl.Brokers) != 2 || len(cl.Controllers) != 0 || cl.Brokers[0].Effective["controller.quorum.voters"] == "" {
		t.Errorf("combined: %+v", cl)
	}
	if _, err := provision.Resize(t.Context(), r.run, r.fleet, r.hosts[:1], p, cell, cl); err == nil || !strings.Contains(err.Error(), "broker 2 leaves and is a controller too") {
		t.Errorf("shrinking a combined cluster: %v", err)
	}
	r.sh(t, "b2", "iptables -A INPUT -p tcp --dport 9092 -s "+r.hosts[2].Internal+" -j REJECT")
	want := fmt.Sprintf("w1: broker 2 at %s cannot be reached: connection refused", cl.Brokers[1].Listener)
	if _, err := provision.Resize(t.Context(), r.run, r.fleet, r.hosts, p, cell, cl); err == nil || err.Error() != want {
		t.Errorf("a firewall that refuses connections: %v, want %q", err, want)
	}
}
