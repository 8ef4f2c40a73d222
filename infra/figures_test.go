package infra_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"krig/infra/lab/labtest"
	"krig/internal/rundir"
)

// A host shows its own processor use, not its neighbour's nor the machine's.
func TestOwnFigures(t *testing.T) {
	if _, err := exec.LookPath("lxcfs"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("lxcfs is not installed")
		}
		t.Skip("lxcfs is not installed")
	}
	run, hosts := labtest.Hosts(t, labtest.Spec{Workers: 2, Memory: 256 << 20})
	burns, idles := hosts[0], hosts[1]
	if !burns.OwnProc || !idles.OwnProc {
		t.Fatal("hosts do not say that their figures are their own")
	}
	before := [2]int{busyTicks(t, run, burns), busyTicks(t, run, idles)}
	on(t, run, burns, "sh", "-c", "timeout 3 sh -c 'while :; do :; done' || true")
	burned, idled := busyTicks(t, run, burns)-before[0], busyTicks(t, run, idles)-before[1]
	t.Logf("burned %d ticks, idled %d", burned, idled)
	if burned < 20 || burned < 3*idled {
		t.Errorf("the busy host shows %d ticks, its neighbour %d", burned, idled)
	}
}

// busyTicks are a host's ticks in user and system mode.
func busyTicks(t *testing.T, run *rundir.Run, h rundir.Host) int {
	t.Helper()
	fields := strings.Fields(on(t, run, h, "head", "-n", "1", "/proc/stat"))
	sum := 0
	for _, i := range []int{1, 2, 3} {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// Without lxcfs the lab works, and says that figures are the machine's.
func TestWithoutLxcfs(t *testing.T) {
	labtest.Need(t)
	bin := t.TempDir()
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if e.Name() != "lxcfs" {
				_ = os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(bin, e.Name())) // the first of a name counts
			}
		}
	}
	t.Setenv("PATH", bin)
	run, hosts := labtest.Hosts(t, labtest.Spec{Workers: 1})
	if hosts[0].OwnProc {
		t.Error("the host's figures count as its own")
	}
	if !strings.Contains(on(t, run, hosts[0], "cat", "/proc/meminfo"), "MemTotal") {
		t.Error("the host has no figures")
	}
}
