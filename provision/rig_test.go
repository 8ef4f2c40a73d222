package provision_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"krig/infra/lab/labtest"
	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// rig is lab hosts with all that a test of this stage needs.
type rig struct {
	run   *rundir.Run
	fleet *remote.Fleet
	hosts []rundir.Host
	cell  *experiment.Cell
}

// needs skips the test where a program is missing, and fails it in CI.
func needs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skipf("%s is not installed", p)
		}
	}
}

// buildAgent makes krig-agent and has krig find it.
func buildAgent(t testing.TB) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "krig-agent-linux-"+runtime.GOARCH), "krig/cmd/krig-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building krig-agent: %v: %s", err, out)
	}
	t.Setenv("KRIG_AGENT_DIR", dir)
}

// kafkaCell asks for the newest Kafka in small virtual machines.
func kafkaCell(spec labtest.Spec) *experiment.Cell {
	c := spec.Cell()
	c.Kafka = experiment.Kafka{Version: "4.4.0", Mode: "kraft", JVM: experiment.JVM{Heap: 320 << 20}}
	c.Collect = experiment.Collect{Sar: true}
	c.Bench.Records = experiment.Count{N: 1000, Set: true}
	return c
}

func newRig(t *testing.T, spec labtest.Spec) *rig {
	t.Helper()
	labtest.Need(t)
	needs(t, "mvn", "java")
	buildAgent(t)
	run, hosts := labtest.Hosts(t, spec)
	run.Listen(func(e rundir.Event) { t.Logf("%s %s %s", e.Stage, e.Host, e.Message) })
	r := &rig{run: run, hosts: hosts, cell: kafkaCell(spec), fleet: remote.NewFleet(run.Dir)}
	r.fleet.Add(hosts...)
	t.Cleanup(func() {
		run.Listen(nil)
		if err := r.fleet.Close(); err != nil {
			t.Errorf("closing connections: %v", err)
		}
	})
	return r
}

// sh runs a line on a host and returns what it prints.
func (r *rig) sh(t *testing.T, host, line string) string {
	t.Helper()
	c, err := r.fleet.Conn(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Root(t.Context(), "sh", "-c", line)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// javas counts the Java processes of a host.
func (r *rig) javas(t *testing.T, host string) string {
	return r.sh(t, host, "pgrep -xc java || true")
}

// with is the cell with a change.
func (r *rig) with(change func(*experiment.Cell)) *experiment.Cell {
	c := *r.cell
	change(&c)
	return &c
}

// standing are the ledger's entries about hosts that are not undone.
func (r *rig) standing(t *testing.T) []rundir.Entry {
	t.Helper()
	all, err := r.run.Ledger.Standing()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e rundir.Entry) bool {
		return !slices.ContainsFunc(r.hosts, func(h rundir.Host) bool { return h.Name == e.Scope })
	})
}

// givenBack asserts that nothing of krig's is on the hosts.
func (r *rig) givenBack(t *testing.T) {
	t.Helper()
	for _, h := range r.hosts {
		if left := r.sh(t, h.Name, "ls -d /opt/krig /var/lib/krig 2>/dev/null; grep -E ' (/opt|/var/lib)/krig/' /proc/mounts; pgrep -x java; true"); left != "" {
			t.Errorf("%s was not given back: %s", h.Name, left)
		}
		for _, d := range h.Disks {
			if holds := r.sh(t, h.Name, "blkid -p "+d.Device+" || true"); holds != "" {
				t.Errorf("%s: %s", h.Name, holds)
			}
		}
	}
	if standing := r.standing(t); len(standing) > 0 {
		t.Errorf("the ledger still has %v", standing)
	}
}
