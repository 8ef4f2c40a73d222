package infra_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/infra/lab/labtest"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// A disk writes and reads at its profile's rate: buffered with an fsync, which
// write-back must not escape, and direct.
func TestDiskRate(t *testing.T) {
	run, hosts := labtest.Hosts(t, labtest.Spec{Brokers: 1, DiskProfile: "ssd", DiskSize: 512 << 20})
	b1 := hosts[0]
	d := b1.Disks[0]
	if d.Profile != "ssd" || d.Write != 30<<20 || d.Read != 60<<20 || d.Size != 512<<20 {
		t.Errorf("the disk is %+v", d)
	}
	on(t, run, b1, "mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0", d.Device)
	on(t, run, b1, "mkdir", "/var/lib/data")
	on(t, run, b1, "mount", d.Device, "/var/lib/data")
	const file = "/var/lib/data/file"
	low := 0.75
	if busy(t) {
		low = 0.5 // others keep the disk below its rate; nothing gets it above
	}
	between(t, "buffered with fsync", rate(t, run, b1, 96<<20, "of="+file, "if=/dev/zero", "conv=fsync"), 30<<20, low, 1.15)
	between(t, "direct write", rate(t, run, b1, 64<<20, "of="+file, "if=/dev/zero", "oflag=direct"), 30<<20, low, 1.15)
	between(t, "direct read", rate(t, run, b1, 64<<20, "if="+file, "of=/dev/null", "iflag=direct"), 60<<20, low, 1.15)
	allocated(t, run)

	begin := time.Now() // what is not yet written may not delay the end
	on(t, run, b1, "dd", "if=/dev/zero", "of="+file, "bs=1M", "count=300")
	if err := infra.Destroy(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("removing a host with 300 MiB not yet written took %v", took)
	}
	if r := strayRules(t); len(r) > 0 {
		t.Errorf("rules are left: %v", r)
	}
}

// allocated checks that the backing file has its blocks, but for the few that
// ext4 gives back while it clears its tables.
func allocated(t *testing.T, run *rundir.Run) {
	t.Helper()
	out, err := exec.Command("losetup", "--list", "--noheadings", "--output", "BACK-FILE,DIO").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := containing(strings.Split(string(out), "\n"), run.Short)
	if len(lines) != 1 {
		t.Fatalf("loop devices of the run: %v", lines)
	}
	f := strings.Fields(lines[0])
	blocks, err := exec.Command("stat", "--format", "%b", f[0]).Output()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(blocks)), 10, 64)
	if err != nil || n*512 < 507<<20 || f[1] != "1" {
		t.Errorf("%s has %d blocks and direct I/O %s", f[0], n, f[1])
	}
}

// rate copies so many bytes on a host and returns bytes a second, the sync included.
func rate(t *testing.T, run *rundir.Run, h rundir.Host, size int, args ...string) float64 {
	t.Helper()
	argv := append([]string{"sh", "-c", `s=$(date +%s%N); dd bs=1M "$@" 2>/dev/null; e=$(date +%s%N); echo $((e-s))`, "dd",
		fmt.Sprintf("count=%d", size>>20)}, args...)
	ns, err := strconv.ParseFloat(on(t, run, h, argv...), 64)
	if err != nil {
		t.Fatal(err)
	}
	return float64(size) / (ns / 1e9)
}

func between(t *testing.T, what string, got, want, low, high float64) {
	t.Helper()
	t.Logf("%s: %.1f %% of what was asked", what, 100*got/want)
	if got < low*want || got > high*want {
		t.Errorf("%s: %.0f, want %.0f", what, got, want)
	}
}

// A link has its rate in both directions, within 5 %.
func TestLinkRate(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	if _, err := exec.LookPath("iperf3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("iperf3 is not installed")
		}
		t.Skip("iperf3 is not installed")
	}
	run := labtest.Run(t)
	for _, bits := range []int64{100e6, 1e9} {
		c := labtest.Spec{Workers: 2}.Cell()
		c.Rig.Workers.Network.Rate = 0
		c.Rig.Workers.Count = 1
		c.Rig.Brokers.Count, c.Rig.Brokers.Disk.Size = 1, 0
		c.Rig.Brokers.Network.Rate = experiment.BitRate(bits) // b1 alone is shaped: both directions are its own
		hosts, err := infra.Apply(t.Context(), run, infra.Want{Cell: c})
		if err != nil {
			t.Fatal(err)
		}
		if hosts[0].LinkRate != bits || hosts[1].LinkRate != 0 {
			t.Errorf("link rates are %d and %d", hosts[0].LinkRate, hosts[1].LinkRate)
		}
		on(t, run, hosts[1], "iperf3", "--server", "--daemon", "--bind", hosts[1].Internal)
		for _, direction := range []string{"", "--reverse"} {
			what := fmt.Sprintf("%d mbit %s", bits/1e6, direction)
			low := 0.95
			if busy(t) {
				low = 0 // others keep the link below its rate
			}
			between(t, what, fastest(t, run, hosts[0], hosts[1], direction, 0.96*float64(bits)), float64(bits), low, 1.05)
		}
	}
}

// busy tells whether more processes want to run than there are processors for.
func busy(t *testing.T) bool {
	t.Helper()
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	load, err := strconv.ParseFloat(strings.Fields(string(data))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return load > 1.5*float64(runtime.NumCPU())
}

// fastest measures until a link reaches what is enough: a busy machine may keep
// it below its rate, but nothing may get it above.
func fastest(t *testing.T, run *rundir.Run, from, to rundir.Host, direction string, enough float64) (most float64) {
	t.Helper()
	for try := 0; try < 4 && most < enough; try++ {
		most = max(most, iperf(t, run, from, to, direction))
	}
	return most
}

// iperf returns bits a second on the wire: a segment of 1448 bytes takes 1514.
func iperf(t *testing.T, run *rundir.Run, from, to rundir.Host, direction string) float64 {
	t.Helper()
	argv := []string{"iperf3", "--json", "--client", to.Internal, "--time", "2", "--omit", "1"}
	if direction != "" {
		argv = append(argv, direction)
	}
	var report struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal([]byte(on(t, run, from, argv...)), &report); err != nil {
		t.Fatal(err)
	}
	return report.End.Received.Rate * 1514 / 1448
}
