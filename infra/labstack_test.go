//go:build clouds

package infra_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"krig/infra"
	"krig/infra/lab"
	"krig/infra/lab/labtest"
	"krig/infra/tool"
	"krig/internal/rundir"
)

// needTerraform skips a test without a terraform or tofu, and fails it in CI.
func needTerraform(t *testing.T) tool.Program {
	t.Helper()
	labtest.Need(t)
	p, err := tool.Terraform(t.Context(), os.Getenv(tool.Env))
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return p
}

func applyBy(t *testing.T, run *rundir.Run, s labtest.Spec, engine string) []rundir.Host {
	t.Helper()
	hosts, err := infra.Apply(t.Context(), run, infra.Want{Cell: withEngine(s, engine), Expiry: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

// The same rig has the same hosts by each engine, but for what is each host's own.
func TestLabEnginesGiveTheSame(t *testing.T) {
	needTerraform(t)
	labtest.Scope(t)
	spec := labtest.Spec{Brokers: 2, Controllers: 1, Workers: 1, DiskSize: 32 << 20, DiskProfile: "ssd", Rate: 1e9, CPUs: 0.5, Memory: 512 << 20}
	direct, stacked := labtest.Run(t), labtest.Run(t)
	want := common(applyBy(t, direct, spec, "direct"))
	hosts := applyBy(t, stacked, spec, "terraform")
	if got := common(hosts); !reflect.DeepEqual(got, want) {
		t.Errorf("through terraform\n%+v, directly\n%+v", got, want)
	}
	project, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		if got := on(t, stacked, h, "hostname"); got != h.Name {
			t.Errorf("%s calls itself %s", h.Name, got)
		}
		if out, err := try(t, stacked, h, "test", "-e", filepath.Join(project, "go.mod")); err == nil {
			t.Errorf("%s sees the project: %s", h.Name, out)
		}
	}
}

// common is what hosts have in common with those of another run.
func common(hosts []rundir.Host) []rundir.Host {
	out := slices.Clone(hosts)
	for i := range out {
		out[i].SSH.Address, out[i].Internal, out[i].SSH.HostKey, out[i].Cgroup = "", "", nil, ""
		out[i].Disks = slices.Clone(out[i].Disks)
		for j := range out[i].Disks {
			out[i].Disks[j].ID, out[i].Disks[j].Device = "", ""
		}
	}
	return out
}

// Growing and shrinking keeps what stands, and so does another label; a host
// that changed, or that no longer runs, is made again.
func TestLabStackKeepsWhatStands(t *testing.T) {
	needTerraform(t)
	labtest.Scope(t)
	run := labtest.Run(t)
	spec := labtest.Spec{Brokers: 1, Workers: 1, DiskSize: 32 << 20}
	one := applyBy(t, run, spec, "terraform")
	on(t, run, one[0], "touch", "/var/lib/still-here")
	spec.Brokers = 3
	three := applyBy(t, run, spec, "terraform")
	if names(three) != "b1 b2 b3 w1" || !reflect.DeepEqual([]rundir.Host{three[0], three[3]}, one) {
		t.Errorf("grown from\n%+v to\n%+v", one, three)
	}
	kept, err := infra.Apply(t.Context(), run, infra.Want{Cell: withEngine(spec, "terraform"), Expiry: time.Now().Add(2 * time.Hour), Kept: true})
	if err != nil || !reflect.DeepEqual(kept, three) {
		t.Errorf("kept for longer:\n%+v (%v), not\n%+v", kept, err, three)
	}
	found, err := infra.Find(t.Context(), infra.Label{Run: run.Short, Scope: os.Getenv("KRIG_SCOPE")})
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, l := range found {
		if l.Hold != rundir.HoldKept || l.Expiry.Before(time.Now().Add(90*time.Minute)) || l.Kind == lab.KindProcess {
			t.Errorf("found %+v", l)
		}
	}
	spec.Brokers = 2
	two := applyBy(t, run, spec, "terraform")
	if names(two) != "b1 b2 w1" || len(containers(t, run.Short)) != 3 {
		t.Errorf("shrunk to %s, and %v stand", names(two), containers(t, run.Short))
	}
	on(t, run, two[0], "test", "-e", "/var/lib/still-here")
	kill(t, run, "b2")
	spec.Memory = 1 << 30 // of all: made again
	again := applyBy(t, run, spec, "terraform")
	if _, err := try(t, run, again[0], "test", "-e", "/var/lib/still-here"); err == nil || again[0].Internal != one[0].Internal {
		t.Errorf("b1 was not made again: %+v", again[0])
	}
	kill(t, run, "w1")
	mended := applyBy(t, run, spec, "terraform")
	on(t, run, mended[2], "true")
	if !mended[0].Same(again[0]) || mended[2].Same(again[2]) {
		t.Errorf("w1 ended; of\n%+v came\n%+v", again, mended)
	}
	if err := infra.Destroy(t.Context(), run); err != nil {
		t.Error(err)
	}
	nothing(t, run.Dir)
}

// kill ends a host as a crash would.
func kill(t *testing.T, run *rundir.Run, host string) {
	t.Helper()
	sh(t, "podman kill krig-"+run.Short+"-"+host)
}

func sh(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// However early or late krig is killed in mid-apply, down and gc leave nothing:
// the tool goes on without krig, and what it calls without the tool.
func TestLabStackKilled(t *testing.T) {
	needTerraform(t)
	labtest.Scope(t)
	other := bystander(t)
	killed(t, 6, "KRIG_TEST_ENGINE=terraform")
	on(t, other.run, other.host, "true")
}

// The tool killed in mid-apply leaves hosts that no state knows, and a lock;
// down leaves nothing.
func TestToolKilled(t *testing.T) {
	needTerraform(t)
	labtest.Scope(t)
	other := bystander(t)
	for _, hosts := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("with %d hosts", hosts), func(t *testing.T) {
			run := labtest.Run(t)
			applied := make(chan error, 1)
			go func() {
				_, err := infra.Apply(t.Context(), run, infra.Want{Cell: withEngine(sevenHosts, "terraform"), Expiry: time.Now().Add(time.Hour)})
				applied <- err
			}()
			killTool(t, run, hosts)
			if err := <-applied; err == nil {
				t.Error("applying without the tool succeeded")
			}
			if err := infra.Destroy(t.Context(), run); err != nil {
				t.Error(err)
			}
			nothing(t, run.Dir)
		})
	}
	on(t, other.run, other.host, "true")
}

// killTool kills the tool that applies, once so many hosts are there.
func killTool(t *testing.T, run *rundir.Run, hosts int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); <-tick.C {
		if hosts > 0 && len(containers(t, run.Short)) < hosts {
			continue
		}
		if pid := applying(t, run); pid > 0 {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("no tool applied")
}

// applying is the process of the tool that applies a run's module; 0 when none does.
func applying(t *testing.T, run *rundir.Run) int {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		env, _ := os.ReadFile(f) // it may have ended
		argv, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		if !strings.Contains(string(env), lab.RunEnv+"="+run.Dir) || !strings.Contains(string(argv), "\x00apply\x00") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	return 0
}

// A rig of another scope, which nobody may touch.
type standing struct {
	run  *rundir.Run
	host rundir.Host
}

func bystander(t *testing.T) standing {
	t.Helper()
	mine := os.Getenv("KRIG_SCOPE")
	t.Setenv("KRIG_SCOPE", mine+"-other")
	run := labtest.Run(t)
	hosts := apply(t, run, labtest.Spec{Workers: 1})
	t.Setenv("KRIG_SCOPE", mine)
	return standing{run, hosts[0]}
}
