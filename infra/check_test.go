package infra_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"krig/infra"
	"krig/infra/lab/labtest"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// find returns the lacks that say something.
func find(lacks []infra.Lack, what string) []infra.Lack {
	var out []infra.Lack
	for _, l := range lacks {
		if strings.Contains(l.What, what) {
			out = append(out, l)
		}
	}
	return out
}

func TestCheckPodmanMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for what, remedy := range map[string]string{
		"podman is not installed": "apt-get install podman", "iptables is not installed": "apt-get install iptables", "ip is not installed": "apt-get install iproute2",
	} {
		got := find(infra.Check(t.Context(), nil), what)
		if len(got) != 1 || got[0].Remedy != remedy || got[0].Path != "" || got[0].Warning {
			t.Errorf("%s: %+v", what, got)
		}
	}
	c := labtest.Spec{Brokers: 1, Rate: 1e9}.Cell()
	got := find(infra.Check(t.Context(), []*experiment.Cell{c, c}), "tc is not installed")
	if len(got) != 1 || got[0].Path != "rigs.lab.brokers.network.rate" {
		t.Errorf("for a shaped link: %+v", got)
	}
	// Whatever else stood would still be found.
	if _, err := infra.Find(t.Context(), infra.Label{Scope: "nobody"}); err != nil {
		t.Errorf("looking without podman: %v", err)
	}
}

func TestCheckMemory(t *testing.T) {
	c := labtest.Spec{Brokers: 2, Workers: 1, Memory: 1 << 50}.Cell()
	got := find(infra.Check(t.Context(), []*experiment.Cell{c}), "the hosts may use 3221225472 MiB of memory together")
	if len(got) != 1 || !got[0].Warning {
		t.Errorf("too much memory: %+v", got)
	}
}

// A data folder that is full is found before anything is touched, and leaves
// nothing when it fills in between.
func TestDataFolderFull(t *testing.T) {
	labtest.Need(t)
	dir := t.TempDir()
	if err := unix.Mount("krig-test", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	t.Setenv("KRIG_LAB_DIR", dir)
	labtest.Scope(t)
	c := labtest.Spec{Brokers: 2, DiskSize: 12 << 20}.Cell()
	if got := find(infra.Check(t.Context(), []*experiment.Cell{c}), "data folder full: "+dir); len(got) != 1 || got[0].Warning {
		t.Errorf("the check finds %+v", got)
	}
	run, err := rundir.Create(t.TempDir(), "full", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	_, err = infra.Apply(t.Context(), run, infra.Want{Cell: c})
	if err == nil || !strings.Contains(err.Error(), "data folder full") || !strings.Contains(err.Error(), "the disks need 24 MiB") {
		t.Errorf("making them: %v", err)
	}
	if err := infra.Destroy(t.Context(), run); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

// What cannot be removed is named, with the command that tries again.
func TestLeft(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	run := labtest.Run(t)
	hosts := apply(t, run, labtest.Spec{Brokers: 1, DiskSize: 16 << 20})
	device, err := os.Open(hosts[0].Disks[0].Device) // something that uses the disk
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	ctx, cancel := contextFor(t, 3*time.Second)
	defer cancel()
	err = infra.Destroy(ctx, run)
	var left *infra.LeftError
	if !asLeft(err, &left) {
		t.Fatalf("with the disk in use: %v", err)
	}
	for _, line := range left.Lines() {
		if !strings.HasSuffix(line, "krig down "+run.Short+" tries again") {
			t.Errorf("no way out in %q", line)
		}
	}
	if !strings.Contains(err.Error(), "loop ") || !strings.Contains(err.Error(), filepath.Base(run.Short)) {
		t.Errorf("not named: %v", err)
	}
}

// down in another environment than run's still finds everything by the ledger.
func TestOtherDataFolder(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	made, err := os.MkdirTemp("/var/lib", "krig-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(made)
	run := labtest.Run(t)
	for _, spec := range []labtest.Spec{{Brokers: 1, DiskSize: 16 << 20}, {Workers: 1}} {
		t.Setenv("KRIG_LAB_DIR", made)
		apply(t, run, spec)
		t.Setenv("KRIG_LAB_DIR", t.TempDir())
		if err := infra.Destroy(t.Context(), run); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(made); err != nil || len(left) > 0 {
			t.Errorf("%v is left (%v)", left, err)
		}
	}
}
