package hoststat

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"krig/internal/result"
)

// Packets smaller than an Ethernet header or larger than the largest that
// segmentation offload counts as one cannot be: the interface's counters were
// reset, and sysstat divided their totals by the interval.
const (
	packetMin = 14
	packetMax = 512 << 10
)

// errorsPerSecond is the unit of network.errors.
const errorsPerSecond = "errors/s"

// SarOptions say what is known of the host that a file comes from.
type SarOptions struct {
	LinkRate int64 // bits/s in each direction; 0 when not known
}

// ReadSar reads what `sadf -j FILE -- -A` printed, of sysstat 10 and later:
// cpu.busy, memory.available, and of each interface network.receive,
// network.transmit and network.errors. Times are whole seconds in UTC.
func ReadSar(r io.Reader, opt SarOptions) (*Reading, error) {
	t := newTable(1)
	out := &Reading{}
	cut, err := document(r, handlers{
		sample: func(n node) {
			at, length, ok := sarTime(n)
			if !ok {
				t.warn("a sample without a time is left out")
				return
			}
			out.Samples++
			sarCPU(t, n, at, length)
			sarMemory(t, n, at, length)
			for _, net := range n.all("network") {
				sarNetwork(t, net, at, length, opt)
			}
		},
		restart: func(n node) {
			boot, _ := n.get("boot")
			if at, err := parseStamp(boot.str("date"), boot.str("time")); err == nil {
				out.Restarts = append(out.Restarts, at)
				t.warn(fmt.Sprintf("the host was booted at %s", at.Format(time.RFC3339)))
			}
		},
	})
	return finish(t, out, cut, err)
}

func parseStamp(date, clock string) (time.Time, error) {
	return time.Parse("2006-01-02 15:04:05", date+" "+clock)
}

// sarTime is a sample's end and length in seconds.
func sarTime(n node) (at, length float64, ok bool) {
	stamp, _ := n.get("timestamp")
	when, err := parseStamp(stamp.str("date"), stamp.str("time"))
	interval := stamp.num("interval")
	if err != nil || interval == nil || *interval <= 0 {
		return 0, 0, false
	}
	return seconds(when), *interval, true
}

func sarCPU(t *table, n node, at, length float64) {
	for _, load := range n.all("cpu-load") {
		for _, cpu := range load.kids {
			if name := cpu.str("cpu"); name == "all" || name == "-1" {
				t.add("cpu.busy", "", result.Ratio, at, length, cpuBusy(t, cpu))
				return
			}
		}
	}
}

// cpuBusy is all but idle and waiting for a disk; no value where a processor
// went offline, which makes the row add up to nothing.
func cpuBusy(t *table, cpu node) *float64 {
	idle, wait := cpu.num("idle"), cpu.num("iowait")
	if idle == nil {
		return nil
	}
	sum := 0.0
	for i, key := range cpu.keys {
		if v := cpu.num(key); v != nil && key != "cpu" && cpu.kids[i].kind == 'v' {
			sum += *v
		}
	}
	if sum < 1 {
		t.warn("cpu: a row that adds up to nothing is no data")
		return nil
	}
	busy := 100 - *idle
	if wait != nil {
		busy -= *wait
	}
	return ptr(max(0, busy) / 100)
}

func sarMemory(t *table, n node, at, length float64) {
	memory, ok := n.get("memory")
	if !ok {
		return
	}
	if avail := memory.num("avail"); avail != nil {
		t.add("memory.available", "", result.Bytes, at, length, ptr(*avail*1024))
	}
}

func sarNetwork(t *table, net node, at, length float64, opt SarOptions) {
	for _, dev := range net.all("net-dev") {
		for _, row := range dev.kids {
			iface := row.str("iface")
			receive, transmit := interfaceBytes(t, row, opt)
			t.add("network.receive", iface, result.BytesPerSecond, at, length, receive)
			t.add("network.transmit", iface, result.BytesPerSecond, at, length, transmit)
		}
	}
	for _, dev := range net.all("net-edev") {
		for _, row := range dev.kids {
			sum := 0.0
			for _, key := range []string{"rxerr", "txerr", "rxdrop", "txdrop", "rxfifo", "txfifo"} {
				if v := row.num(key); v != nil {
					sum += *v
				}
			}
			t.add("network.errors", row.str("iface"), errorsPerSecond, at, length, &sum)
		}
	}
}

// interfaceBytes are an interface's bytes/s; no value in both directions where
// one of them cannot be.
func interfaceBytes(t *table, row node, opt SarOptions) (receive, transmit *float64) {
	iface := row.str("iface")
	for _, d := range []struct {
		into  **float64
		bytes string
		packs string
	}{{&receive, "rxkB", "rxpck"}, {&transmit, "txkB", "txpck"}} {
		kb, packets := row.num(d.bytes), row.num(d.packs)
		if kb == nil || packets == nil {
			continue
		}
		if !plausible(*kb*1024, *packets, opt.LinkRate) {
			t.warn(fmt.Sprintf("interface %s: counters were reset, the sample is left out", iface))
			return nil, nil
		}
		*d.into = ptr(*kb * 1024)
	}
	return receive, transmit
}

// plausible tells whether bytes and packets per second can be. Small counts
// are too coarse to judge.
func plausible(bytes, packets float64, linkRate int64) bool {
	if linkRate > 0 && bytes > 4*float64(linkRate)/8 {
		return false
	}
	if packets < 10 {
		return true
	}
	size := bytes / packets
	return size >= packetMin && size <= packetMax
}

// sar is the collector of processors, memory and links.
func sar() Collector {
	return Collector{
		Name: "sar", Package: "sysstat", Raw: ".bin", Ext: ".json", Kernel: true,
		Argv: func(a Ask, _ []string, file string) []string {
			return []string{"sar", "-A", "-o", file, strconv.Itoa(a.Interval)}
		},
		Convert: func(file string) []string { return []string{"sadf", "-j", file, "--", "-A"} },
		Read: func(r io.Reader, h Watched) (*Reading, error) {
			return ReadSar(r, SarOptions{LinkRate: h.LinkRate})
		},
	}
}
