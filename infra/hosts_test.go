package infra_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/infra/lab/labtest"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// on runs a command on a host and returns what it printed.
func on(t *testing.T, run *rundir.Run, h rundir.Host, argv ...string) string {
	t.Helper()
	out, err := try(t, run, h, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

func try(t *testing.T, run *rundir.Run, h rundir.Host, argv ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	c, err := remote.Dial(ctx, h, run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Output(ctx, argv...)
}

func apply(t *testing.T, run *rundir.Run, s labtest.Spec) []rundir.Host {
	t.Helper()
	hosts, err := infra.Apply(t.Context(), run, infra.Want{Cell: s.Cell(), Expiry: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

func names(hosts []rundir.Host) string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return strings.Join(out, " ")
}

func TestTenHosts(t *testing.T) {
	run, hosts := labtest.Hosts(t, labtest.Spec{Brokers: 5, Controllers: 1, Workers: 4, DiskSize: 64 << 20, CPUs: 0.5, Memory: 512 << 20})
	if got, want := names(hosts), "b1 b2 b3 b4 b5 c1 w1 w2 w3 w4"; got != want {
		t.Fatalf("hosts are %s, want %s", got, want)
	}
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]bool{}
	for _, h := range hosts {
		if got := on(t, run, h, "hostname"); got != h.Name || got == machine {
			t.Errorf("%s calls itself %s", h.Name, got)
		}
		addresses[h.Internal] = true
		if got := on(t, run, h, "hostname", "-I"); got != h.Internal {
			t.Errorf("%s has the address %s, not %s", h.Name, got, h.Internal)
		}
		if h.CPUs != 0.5 || h.Memory != 512<<20 || !h.Lab || !h.SharesKernel() || h.LinkName != "eth0" || h.Arch == "" || h.Kernel == "" {
			t.Errorf("%s is described as %+v", h.Name, h)
		}
	}
	if len(addresses) != len(hosts) {
		t.Errorf("%d hosts share %d addresses", len(hosts), len(addresses))
	}
	if len(hosts[0].Disks) != 1 || len(hosts[5].Disks) != 0 || len(hosts[9].Disks) != 0 {
		t.Error("not the brokers alone have a disk")
	}
	limits(t, run, hosts[9])
}

// limits checks that a host shows and has its own processor and memory.
func limits(t *testing.T, run *rundir.Run, h rundir.Host) {
	t.Helper()
	if h.OwnProc {
		if got := on(t, run, h, "grep", "MemTotal", "/proc/meminfo"); !strings.Contains(got, " 524288 kB") {
			t.Errorf("%s shows %s, not its own 512 MiB", h.Name, got)
		}
	}
	if got := on(t, run, h, "cat", "/proc/self/cgroup"); strings.Contains(got, "libpod") {
		t.Errorf("%s sees the machine's cgroups: %s", h.Name, got)
	}
	found, err := filepath.Glob("/sys/fs/cgroup/*" + h.Cgroup)
	v2, err2 := filepath.Glob("/sys/fs/cgroup" + h.Cgroup)
	if err != nil || err2 != nil || len(found)+len(v2) == 0 {
		t.Errorf("%s: no cgroup %s on this machine", h.Name, h.Cgroup)
	}
	begin := time.Now()
	on(t, run, h, "sh", "-c", "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; times")
	t.Logf("a loop took %v at half a processor", time.Since(begin))
	if out, err := try(t, run, h, "sh", "-c", "head -c 700m /dev/zero | tail -c 690m >/dev/null"); err == nil {
		t.Errorf("%s could use 700 MB of 512 MiB: %s", h.Name, out)
	}
	if _, err := os.Stat("oom"); err == nil {
		t.Error("a host that ran out of memory left a file where krig runs")
	}
}

// A host that is wanted again is kept as it stands, also by another process.
func TestGrowAndShrink(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	run := labtest.Run(t)
	spec := labtest.Spec{Brokers: 1, Workers: 2, DiskSize: 32 << 20}
	one := apply(t, run, spec)
	on(t, run, one[0], "touch", "/var/lib/still-here")

	spec.Brokers = 3
	three := apply(t, run, spec)
	if got, want := names(three), "b1 b2 b3 w1 w2"; got != want {
		t.Fatalf("grown to %s, want %s", got, want)
	}
	for _, pair := range [][2]rundir.Host{{one[0], three[0]}, {one[1], three[3]}, {one[2], three[4]}} {
		if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
			t.Errorf("%s was %+v and is %+v", pair[0].Name, pair[0], pair[1])
		}
	}
	on(t, run, three[0], "test", "-e", "/var/lib/still-here")

	again, err := rundir.Open(run.Dir) // as another process does
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	spec.Brokers, spec.Workers = 2, 1
	two := apply(t, again, spec)
	if got, want := names(two), "b1 b2 w1"; got != want {
		t.Fatalf("shrunk to %s, want %s", got, want)
	}
	on(t, run, two[0], "test", "-e", "/var/lib/still-here")
	if conn, err := net.DialTimeout("tcp", net.JoinHostPort(three[2].Internal, "22"), time.Second); err == nil {
		conn.Close()
		t.Error("b3 still answers")
	}
	if standing := containers(t, run.Short); len(standing) != 3 {
		t.Errorf("%v stand, want three hosts", standing)
	}
	changed(t, run, spec, two)
}

// changed makes the brokers' disks larger: they are made again, the worker is kept.
func changed(t *testing.T, run *rundir.Run, spec labtest.Spec, before []rundir.Host) {
	t.Helper()
	on(t, run, before[2], "touch", "/var/lib/still-here")
	spec.DiskSize = 48 << 20
	after := apply(t, run, spec)
	if after[0].Disks[0].Size != 48<<20 || slices.Equal(after[0].SSH.HostKey, before[0].SSH.HostKey) {
		t.Errorf("b1 was not made again: %+v", after[0])
	}
	if _, err := try(t, run, after[0], "test", "-e", "/var/lib/still-here"); err == nil {
		t.Error("b1 made again still has its files")
	}
	on(t, run, after[2], "test", "-e", "/var/lib/still-here")
}

func TestRoles(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	run := labtest.Run(t)
	c := labtest.Spec{Brokers: 2, Workers: 0, DiskSize: 32 << 20}.Cell()
	c.Rig.Controllers.Count, c.Rig.Controllers.On = 1, "brokers"
	c.Rig.Workers.Count, c.Rig.Workers.On = 0, "brokers"
	hosts, err := infra.Apply(t.Context(), run, infra.Want{Cell: c})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(hosts[0].Roles, hosts[1].Roles), "[broker controller worker] [broker worker]"; got != want {
		t.Errorf("roles are %s, want %s", got, want)
	}
	c.Kafka.Mode = "combined"
	if hosts, err = infra.Apply(t.Context(), run, infra.Want{Cell: c}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(hosts[0].Roles, hosts[1].Roles), "[broker controller worker] [broker controller worker]"; got != want {
		t.Errorf("combined, roles are %s, want %s", got, want)
	}
}

// Nothing of this machine's homes, temporary files, run directories, project
// and agents is visible in a host, and nothing of its kernel can be changed.
func TestNothingOfTheMachine(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	agentDir := t.TempDir()
	agent, err := net.Listen("unix", filepath.Join(agentDir, "agent.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	t.Setenv("SSH_AUTH_SOCK", agent.Addr().String())
	odd, err := os.MkdirTemp("/srv", "krig-test-") // an agent's socket in no usual place
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(odd)
	t.Setenv("GNUPGHOME", odd)

	run, hosts := labtest.Hosts(t, labtest.Spec{Brokers: 1, DiskSize: 32 << 20})
	const marker = "krig-marker-7d1f"
	project, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	runs := filepath.Dir(run.Dir)
	for _, dir := range []string{home, "/tmp", "/var/tmp", "/run", runs, run.Dir, project, agentDir, odd} {
		path := filepath.Join(dir, marker)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		if _, err := try(t, run, hosts[0], "test", "-e", path); err == nil {
			t.Errorf("a host sees %s", path)
		}
	}
	if got := on(t, run, hosts[0], "find", "/", "-xdev", "-name", marker+"*"); got != "" {
		t.Errorf("a host finds %s", got)
	}
	for _, cmd := range []string{
		"test -e " + home + "/.cache/krig",
		"test -S " + agent.Addr().String(),
		"test -n \"$SSH_AUTH_SOCK\"",
		"ls /etc/ssh/ssh_host_rsa_key",
		"grep -v '^root:[*]' /etc/shadow",
		"ls /var/lib/containers/* /root/* /tmp/*",
		"echo 17 >/proc/sys/vm/swappiness",
		"date -s '2001-01-01'",
		"mknod /var/disk b $(cat /sys/class/block/*/dev | grep -v ^7: | tail -1 | tr : ' ') && head -c 1 /var/disk",
		"modprobe loop",
	} {
		if out, err := try(t, run, hosts[0], "sh", "-c", cmd); err == nil {
			t.Errorf("a host can %q: %s", cmd, out)
		}
	}
}

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

func asLeft(err error, left **infra.LeftError) bool { return errors.As(err, left) }
