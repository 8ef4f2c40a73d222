package bench

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"krig/internal/rundir"
)

func TestLeftIn(t *testing.T) {
	for listing, want := range map[string]string{
		"":                          "",
		"krig-a-1-0\n":              "krig-a-1-0",
		"x\nkrig-a-1-3.8f0e-delete": "krig-a-1-3.8f0e-delete",
		"krig-a-12-0\n":             "",
		"krig-a-1-\nkrig-a-1\n":     "",
		"meta.properties\n__consumer_offsets-0\n": "",
	} {
		if got := leftIn(listing, []string{"krig-a-1"}); got != want {
			t.Errorf("%q: %q, want %q", listing, got, want)
		}
	}
}

func TestDirtyPages(t *testing.T) {
	got, err := dirtyPages("MemTotal: 10 kB\nDirty:   12 kB\nWriteback: 4 kB\nWritebackTmp: 7 kB\n")
	if err != nil || got != 16*1024 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "Dirty: 12 kB\n", "Dirty: x kB\nWriteback: 1 kB\n"} {
		if _, err := dirtyPages(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}

func FuzzDirtyPages(f *testing.F) {
	f.Add("Dirty:   12 kB\nWriteback: 4 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := dirtyPages(text); err == nil && (got < 0 || math.IsNaN(got)) {
			t.Errorf("%v", got)
		}
	})
}

func TestInFlight(t *testing.T) {
	block := t.TempDir()
	for name, text := range map[string]string{"loop3": "       0        0\n", "loop4": "       0       12\n"} {
		if err := os.Mkdir(filepath.Join(block, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(block, name, "inflight"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for device, want := range map[string]string{
		"/dev/loop3": "", "/dev/loop4": "b1: loop4 has 12 requests in flight", "": "",
	} {
		h := rundir.Host{Name: "b1"}
		if device != "" {
			h.Disks = []rundir.Disk{{Device: device}}
		}
		if got, err := inFlight(block, h); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", device, got, err, want)
		}
	}
	if _, err := inFlight(block, rundir.Host{Name: "b1", Disks: []rundir.Disk{{Device: "/dev/loop5"}}}); err == nil {
		t.Error("a device that is not there is quiet")
	}
}

func TestBrokersAreAskedAtOnce(t *testing.T) {
	cl := &rundir.Cluster{Brokers: []rundir.Node{{ID: 1}, {ID: 2}, {ID: 3}}}
	all := make(chan bool)
	left, err := brokers(cl, func(b rundir.Node) (string, error) {
		if b.ID == 3 {
			close(all)
		}
		<-all // none answers before the last is asked
		if b.ID == 1 {
			return "", errors.New("not reached")
		}
		return map[int32]string{2: "two", 3: "three"}[b.ID], nil
	})
	if left != "two" || err != nil {
		t.Errorf("%q, %v: want what is left of the first that has something", left, err)
	}
}
