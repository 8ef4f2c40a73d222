package bench

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"krig/infra/lab/labtest"
	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/result"
	"krig/internal/rundir"
)

// labSession is a session on lab hosts that have nothing but the agent.
func labSession(t *testing.T, spec labtest.Spec) *Session {
	t.Helper()
	dir, err := agentDir()
	if err != nil {
		t.Fatal(err)
	}
	run, hosts := labtest.Hosts(t, spec)
	fleet := remote.NewFleet(run.Dir)
	t.Cleanup(func() { fleet.Close() })
	fleet.Add(hosts...)
	rig := Rig{Name: "lab", State: 1, Hosts: hosts, Prepared: &rundir.Prepared{}}
	for _, h := range hosts {
		conn, err := fleet.Conn(t.Context(), h.Name)
		if err == nil {
			err = conn.Put(t.Context(), filepath.Join(dir, "krig-agent-linux-"+runtime.GOARCH), "/krig/krig-agent")
		}
		if err != nil {
			t.Fatal(err)
		}
		rig.Prepared.Hosts = append(rig.Prepared.Hosts, rundir.PreparedHost{Name: h.Name, Dir: "/krig", Agent: "/krig/krig-agent"})
	}
	rig.Limits, err = Probe(t.Context(), run, fleet, hosts, rig.Prepared, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), run, fleet, rig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func collected() *experiment.Cell {
	c := &experiment.Cell{ID: "c1"}
	c.Collect = experiment.Collect{Interval: experiment.Duration(time.Second), Sar: true, Iostat: true, Pidstat: true}
	return c
}

func (s *Session) root(t *testing.T, host string, argv ...string) string {
	t.Helper()
	conn, err := s.fleet.Conn(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	out, err := conn.Root(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func known(t *testing.T, hosts map[string]result.HostResult, host, name string) float64 {
	t.Helper()
	m := hosts[host].Measures[name]
	if m.Value == nil {
		t.Errorf("%s of %s is not known: %s", name, host, m.Reason)
		return math.NaN()
	}
	return *m.Value
}

func about(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if !(math.Abs(got-want) <= part*want) {
		t.Errorf("%s = %v, want %v within %v %%", what, got, want, part*100)
	}
}

// cgroupTime is the processor time that a host has used, in s, seen from outside.
func cgroupTime(t *testing.T, s *Session, host string) float64 {
	t.Helper()
	h, _ := s.host(host)
	for path, unit := range map[string]float64{
		filepath.Join("/sys/fs/cgroup/cpuacct", h.Cgroup, "cpuacct.usage"): 1e9,
		filepath.Join("/sys/fs/cgroup", h.Cgroup, "cpu.stat"):              1e6,
	} {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		text := strings.TrimPrefix(strings.Split(string(data), "\n")[0], "usage_usec ")
		used, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return used / unit
	}
	t.Fatalf("no cgroup of %s at %s", host, h.Cgroup)
	return 0
}

// A disk, a link and a processor quota that are known and full must show as that.
func TestCollectKnownLoad(t *testing.T) {
	const write, link = 20 << 20, 80_000_000
	s := labSession(t, labtest.Spec{Brokers: 2, DiskWrite: write, DiskRead: 2 * write, Rate: link, CPUs: 0.3})
	b1, _ := s.host("b1")
	b2, _ := s.host("b2")
	c, err := s.collect(t.Context(), Ask{Cell: collected(), Repeat: 1, Attempt: 1}, "cells/c1/1/hosts")
	if err != nil {
		t.Fatal(err)
	}
	// Full all the time on b1: its disk by dd, its link by a stream to b2, and
	// its quota by both and a loop.
	load, end := context.WithCancel(t.Context())
	start := func(host string, argv ...string) {
		conn, err := s.fleet.Conn(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); conn.Exec(load, remote.Cmd{Argv: argv, Become: true}) }()
		t.Cleanup(func() { end(); <-done })
	}
	start("b1", "dd", "if=/dev/zero", "of="+b1.Disks[0].Device, "bs=1M", "oflag=direct", "count=900")
	start("b2", "sh", "-c", "while :; do :; done")
	listen := "import socket\ns=socket.socket(); s.bind(('0.0.0.0',5201)); s.listen(1); c,_=s.accept()\nwhile c.recv(1<<16): pass"
	send := fmt.Sprintf("import socket,time\nfor i in range(100):\n  try: s=socket.create_connection(('%s',5201)); break\n  except OSError: time.sleep(0.1)\nd=b'x'*65536\nwhile True: s.sendall(d)", b2.Internal)
	start("b2", "python3", "-c", listen)
	start("b1", "python3", "-c", send)
	time.Sleep(2 * time.Second) // the load gets going
	phase := result.Phase{Name: "steady", Start: time.Now()}
	before := cgroupTime(t, s, "b2")
	time.Sleep(8 * time.Second)
	phase.End = time.Now()
	used := (cgroupTime(t, s, "b2") - before) / phase.End.Sub(phase.Start).Seconds()
	end()
	c.stop(t.Context())
	hosts, series, warnings := c.read([]result.Phase{phase})
	t.Log(warnings)
	for name, h := range hosts {
		if h.Lost != "" {
			t.Errorf("%s lost: %s", name, h.Lost)
		}
	}
	about(t, "disk.write", known(t, hosts, "b1", "disk.write"), write, 0.1)
	about(t, "disk.busy", known(t, hosts, "b1", "disk.busy"), 1, 0.1)
	about(t, "share.disk", known(t, hosts, "b1", "share.disk"), 1, 0.1)
	about(t, "network.transmit", known(t, hosts, "b1", "network.transmit"), link/8, 0.1)
	about(t, "network.receive", known(t, hosts, "b2", "network.receive"), link/8, 0.1)
	about(t, "share.network", known(t, hosts, "b2", "share.network"), 1, 0.1)
	about(t, "cpu.busy", known(t, hosts, "b2", "cpu.busy"), used/0.3, 0.1)
	if got := known(t, hosts, "b2", "disk.write"); got > write/100 {
		t.Errorf("the idle disk of b2 writes %v B/s: another's", got)
	}
	for _, name := range []string{"cpu.busy", "cpu.pressure", "memory.available", "network.receive", "disk.write"} {
		known(t, hosts, machine, name)
	}
	if got := known(t, hosts, "b1", "memory.available"); got <= 0 || got > 2<<30 {
		t.Errorf("memory.available of a host with 2 GiB is %v", got)
	}
	for _, host := range []string{"b1", "b2", machine} {
		if cost := known(t, hosts, host, "collectors.cpu"); cost <= 0 || cost > 0.2 {
			t.Errorf("collecting on %s took %v of a processor", host, cost)
		}
	}
	processes := false
	for _, one := range series {
		processes = processes || one.Host == "b1" && one.Name == "process.dd.write"
	}
	if !processes {
		t.Error("dd is not among the processes of b1")
	}
	for _, name := range []string{"sar.json", "iostat.json", "pidstat.txt", "own.jsonl"} {
		if _, err := os.Stat(s.run.Path("cells/c1/1/hosts/b1", name)); err != nil {
			t.Error(err)
		}
	}
	if left := s.root(t, "b1", "ls", "/krig/collect"); left != "" {
		t.Errorf("left on the host: %s", left)
	}
}

// A collector that dies is started once more, and the hole shows; an agent
// that dies costs the rest of that host's samples, a host that dies its files, and says so.
func TestCollectFaults(t *testing.T) {
	s := labSession(t, labtest.Spec{Brokers: 2, Workers: 2})
	c, err := s.collect(t.Context(), Ask{Cell: collected(), Repeat: 1, Attempt: 1}, "cells/c1/1/hosts")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	s.root(t, "b1", "sh", "-c", "kill -9 $(pgrep -x iostat)")
	s.root(t, "b2", "sh", "-c", "kill -9 $(pgrep -x krig-agent -o)")
	time.Sleep(2 * time.Second)
	s.root(t, "b1", "sh", "-c", "kill -9 $(pgrep -x sar)")
	if out, err := exec.Command("podman", "kill", "krig-"+s.run.Short+"-w2").CombinedOutput(); err != nil {
		t.Fatalf("ending a host: %v: %s", err, out)
	}
	time.Sleep(4 * time.Second)
	phase := result.Phase{Name: "steady", Start: c.started, End: time.Now()}
	asked := time.Now()
	c.stop(t.Context())
	if took := time.Since(asked); took > 45*time.Second {
		t.Errorf("stopping took %v", took)
	}
	hosts, series, _ := c.read([]result.Phase{phase})
	for name, h := range hosts {
		t.Log(name, "lost:", h.Lost)
	}
	for _, word := range []string{"iostat ended: signal: killed; started again", "sar ended: signal: killed; started again"} {
		if !strings.Contains(hosts["b1"].Lost, word) {
			t.Errorf("b1 does not say %q", word)
		}
	}
	if !strings.Contains(hosts["b2"].Lost, "krig-agent has ended") {
		t.Error("b2 does not say that its agent is gone")
	}
	if !strings.Contains(hosts["w2"].Lost, "bringing files home") {
		t.Error("w2 does not say why its files are missing")
	}
	if hosts["w1"].Lost != "" {
		t.Errorf("w1 lost: %s", hosts["w1"].Lost)
	}
	holes := map[string]bool{}
	for _, one := range series {
		for i, v := range one.Values {
			if v == nil && i > 0 && i < len(one.Values)-1 {
				holes[one.Host+" "+one.Name] = true
			}
		}
		if one.Host == "b2" && one.Name == "network.receive" && len(one.Times) < 2 {
			t.Error("what sar of b2 had collected did not come home")
		}
	}
	for _, want := range []string{"b1 disk.write", "b1 network.receive"} {
		if !holes[want] {
			t.Errorf("no hole in %s: %v", want, holes)
		}
	}
	if holes["b1 cpu.busy"] || holes["w1 network.receive"] {
		t.Errorf("holes where nothing died: %v", holes)
	}
	known(t, hosts, "b1", "disk.write")
}
