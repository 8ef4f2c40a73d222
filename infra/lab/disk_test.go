package lab

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatal("not root")
	}
	t.Skip("not root")
}

// smallFolder is a data folder of 8 MiB.
func smallFolder(t *testing.T) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("krig-test", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("no tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDataFolderFull(t *testing.T) {
	dir := smallFolder(t)
	t.Setenv("KRIG_LAB_DIR", filepath.Join(dir, "not", "yet", "there"))
	if err := Room(7 << 20); err != nil {
		t.Errorf("7 of 8 MiB: %v", err)
	}
	err := Room(9 << 20)
	var full *FullError
	if !errors.As(err, &full) || full.Needed != 9<<20 || full.Free > 8<<20 || full.Free < 7<<20 {
		t.Fatalf("9 of 8 MiB: %v", err)
	}
	for _, want := range []string{"data folder full", "the disks need 9 MiB", "KRIG_LAB_DIR", dir} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if l, short := Full(9 << 20); !short || !strings.Contains(l.What, "data folder full") || l.Remedy == "" {
		t.Errorf("the check says %+v, %v", l, short)
	}
	if l, short := Full(1 << 20); short {
		t.Errorf("the check says %+v", l)
	}
	if err := allocate(filepath.Join(dir, "disk"), 9<<20); !errors.As(err, &full) {
		t.Errorf("allocating: %v", err)
	}
}

func TestAttachAndThrottle(t *testing.T) {
	needRoot(t)
	if !exists("/dev/loop-control") {
		if os.Getenv("CI") != "" {
			t.Fatal("no /dev/loop-control")
		}
		t.Skip("no /dev/loop-control")
	}
	dir, err := os.MkdirTemp("/var/lib", "krig-test-") // a file system that takes direct I/O
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "disk")
	if err := allocate(file, 1<<20); err != nil {
		t.Fatal(err)
	}
	device, err := attach(file)
	if err != nil {
		t.Fatal(err)
	}
	defer release(t.Context(), file)
	if got, err := loopOf(file); err != nil || got != device {
		t.Errorf("%s is at %q (%v), not %s", file, got, err, device)
	}
	number, err := deviceNumber(device)
	if err != nil {
		t.Fatal(err)
	}
	if Mode() != CgroupV2 && canThrottle() {
		if err := throttle(device, Disk{Write: 1 << 20, IOPS: 100}); err != nil || !throttled(number) {
			t.Errorf("throttled is %v (%v)", throttled(number), err)
		}
	}
	if err := release(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if throttled(number) || exists(file) {
		t.Error("a rule or the file is left")
	}
	if err := release(t.Context(), file); err != nil {
		t.Errorf("released again: %v", err)
	}
}
