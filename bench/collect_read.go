package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"krig/bench/hoststat"
	"krig/internal/result"
)

// hostRead is what was read of one host's files. Series with an empty Of are
// those that a reader sees.
type hostRead struct {
	series   []*hoststat.Series
	lost     []string
	warnings []string
}

// hostMeasures are the measures of a host in the steady phase, with what each
// is over that time, and why it is not known where no file carries it.
func hostMeasures() []hostMeasure {
	return []hostMeasure{
		{"cpu.busy", result.Ratio, false, "no sample of its processors"},
		{"memory.available", result.Bytes, true, "no sample of its memory"},
		{"disk.busy", result.Ratio, false, "no disk of its own was watched"},
		{"disk.read", result.BytesPerSecond, false, "no disk of its own was watched"},
		{"disk.write", result.BytesPerSecond, false, "no disk of its own was watched"},
		{"disk.free", result.Bytes, true, "no data directory was watched"},
		{"network.receive", result.BytesPerSecond, false, "sar was not collected"},
		{"network.transmit", result.BytesPerSecond, false, "sar was not collected"},
		{"network.errors", "errors/s", false, "sar was not collected"},
	}
}

type hostMeasure struct {
	name, unit string
	lowest     bool // the lowest value; else the mean
	missing    string
}

// measure sets a host's measures over the steady phase.
func (r *hostRead) measure(into result.Measures, steady result.Phase, known bool) {
	start, end := unix(steady.Start), unix(steady.End)
	for _, m := range hostMeasures() {
		s := r.find(m.name)
		value, ok := 0.0, false
		switch {
		case !known:
			into.SetUnknown(m.name, m.unit, "there was no steady phase")
			continue
		case s != nil && m.lowest:
			value, ok = s.Lowest(start, end)
		case s != nil:
			value, ok = s.Mean(start, end)
		}
		switch {
		case ok:
			into.Set(m.name, value, m.unit)
		case s != nil:
			into.SetUnknown(m.name, m.unit, "no sample lies wholly inside the steady phase")
		default:
			into.SetUnknown(m.name, m.unit, m.missing)
		}
	}
	for _, s := range r.series {
		if value, ok := s.Mean(start, end); ok && known && s.Of == "" && s.Measure == "cpu.pressure" {
			into.Set(s.Measure, value, s.Unit)
		}
	}
}

// find is a host's own series of a measure; nil when there is none.
func (r *hostRead) find(measure string) *hoststat.Series {
	for _, s := range r.series {
		if s.Measure == measure && s.Of == "" {
			return s
		}
	}
	return nil
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// readHost reads all files of a host that are home, onto this machine's clock.
func (c *collection) readHost(w *watched) *hostRead {
	r := &hostRead{}
	w.mu.Lock()
	r.lost = append(r.lost, w.holes...)
	files := w.files
	w.mu.Unlock()
	expect := int(c.ended.Sub(c.started) / time.Duration(w.asked.Interval) / time.Second)
	if files != nil {
		expect = files.Expect
	}
	host := hoststat.Watched{
		CPUs: w.host.CPUs, LinkRate: w.host.LinkRate, Interval: time.Duration(w.asked.Interval) * time.Second,
	}
	r.series = r.files(w, hoststat.OwnSamples(), expect, host)
	collectors, err := hoststat.Asked(w.asked)
	if err != nil {
		r.lost = append(r.lost, err.Error())
	}
	var devices []*hoststat.Series
	for _, one := range collectors {
		devices = append(devices, r.take(w, one, r.files(w, one, expect, host))...)
	}
	r.network(w, devices)
	r.disk(w, devices, files)
	c.align(w.name, r.series)
	return r
}

// take takes a collector's series over and returns those of single links and
// disks, which have yet to be summed.
func (r *hostRead) take(w *watched, c hoststat.Collector, all []*hoststat.Series) (devices []*hoststat.Series) {
	foreign := c.Kernel && w.asked.Cgroup && !w.host.OwnProc // the whole machine's, not the host's
	for _, s := range all {
		switch {
		case s.Of != "" && (strings.HasPrefix(s.Measure, "network.") || strings.HasPrefix(s.Measure, "disk.")):
			devices = append(devices, s)
		case s.Of == "" && (foreign || r.find(s.Measure) != nil):
		default:
			r.series = append(r.series, s)
		}
	}
	return devices
}

// align moves series onto this machine's clock and shows holes as holes.
func (c *collection) align(host string, all []*hoststat.Series) {
	for _, s := range all {
		for i, at := range s.Times {
			s.Times[i] = unix(c.s.clocks.local(host, int64(at*1e9)))
		}
		if !strings.HasPrefix(s.Measure, "process.") { // idle processes are not listed
			s.Fill()
		}
	}
}

// files reads the files that a collector wrote at its starts and joins their
// series. What is missing or short goes to lost.
func (r *hostRead) files(w *watched, c hoststat.Collector, expect int, host hoststat.Watched) []*hoststat.Series {
	var joined []*hoststat.Series
	samples, found := 0, false
	for n := 1; n <= hoststat.Starts; n++ {
		name := c.File(n, c.Ext)
		reading, err := readFile(filepath.Join(w.home, name), func(f io.Reader) (*hoststat.Reading, error) { return c.Read(f, host) })
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		found = true
		if err != nil {
			r.lost = append(r.lost, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		samples += reading.Samples
		for _, text := range reading.Warnings {
			r.warnings = append(r.warnings, name+": "+text)
		}
		joined = join(joined, reading.Series)
	}
	switch missing := expect - samples; {
	case !found:
		r.lost = append(r.lost, c.Name+": no file came home")
	case !c.Sparse && missing > 2 && missing > expect/50: // the first and the last interval may be cut
		r.lost = append(r.lost, fmt.Sprintf("%s is short: %d of %d samples", c.Name, samples, expect))
	}
	return joined
}

func readFile(path string, read func(io.Reader) (*hoststat.Reading, error)) (*hoststat.Reading, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f)
}

// join appends later series to those of the same measure and device.
func join(to, later []*hoststat.Series) []*hoststat.Series {
	for _, l := range later {
		have := false
		for _, s := range to {
			if s.Measure == l.Measure && s.Of == l.Of {
				s.Append(l)
				have = true
			}
		}
		if !have {
			to = append(to, l)
		}
	}
	return to
}

// network takes the host's own interface; without a name, the sum of all but loopback.
func (r *hostRead) network(w *watched, sar []*hoststat.Series) {
	for _, measure := range []string{"network.receive", "network.transmit", "network.errors"} {
		var parts []*hoststat.Series
		for _, s := range sar {
			own := s.Of == w.host.LinkName || w.host.LinkName == "" && hardware(s.Of)
			if s.Measure == measure && own {
				parts = append(parts, s)
			}
		}
		if sum := hoststat.Combine(measure, parts, hoststat.Sum); sum != nil {
			r.series = append(r.series, sum)
		}
	}
}

// hardware tells whether an interface may be a link out of the machine.
func hardware(name string) bool {
	for _, virtual := range []string{"lo", "veth", "podman", "docker", "br-", "virbr", "ifb", "tap", "tun"} {
		if strings.HasPrefix(name, virtual) {
			return false
		}
	}
	return name != ""
}

// disk sums the host's own disks. On a machine of which none were named those
// are its real ones: the lab's loop devices write to them, and are there beside them.
func (r *hostRead) disk(w *watched, all []*hoststat.Series, files *hoststat.Files) {
	own := map[string]bool{}
	if files != nil {
		for _, d := range files.Devices {
			own[d] = true
		}
	}
	for _, d := range w.asked.Disks {
		own[filepath.Base(d)] = true
	}
	with := func(measure string, f func(a, b float64) float64) {
		var parts []*hoststat.Series
		for _, s := range all {
			keep := own[s.Of]
			if w.asked.Real {
				keep = realDisk(s.Of)
			}
			if s.Measure == measure && keep {
				parts = append(parts, s)
			}
		}
		if sum := hoststat.Combine(measure, parts, f); sum != nil {
			r.series = append(r.series, sum)
		}
	}
	with("disk.read", hoststat.Sum)
	with("disk.write", hoststat.Sum)
	if busy := throttled(w, r.find("disk.read"), r.find("disk.write")); busy != nil {
		r.series = append(r.series, busy)
		return
	}
	with("disk.busy", hoststat.Max)
}

// realDisk tells whether a device is no layer on top of another.
func realDisk(name string) bool {
	for _, layer := range []string{"loop", "dm-", "md", "ram", "zram", "nbd"} {
		if strings.HasPrefix(name, layer) {
			return false
		}
	}
	return name != ""
}

// throttled is the busy part of disks with a profile: bytes over what it lets
// through, the fuller direction. What iostat calls util means nothing there: the throttle
// queues above the accounting. It is nil where the disks are not throttled.
func throttled(w *watched, read, write *hoststat.Series) *hoststat.Series {
	var mostRead, mostWrite int64
	for _, d := range w.host.Disks {
		mostRead, mostWrite = mostRead+d.Read, mostWrite+d.Write
	}
	var parts []*hoststat.Series
	for _, d := range []struct {
		s    *hoststat.Series
		most int64
	}{{read, mostRead}, {write, mostWrite}} {
		if d.s != nil && d.most > 0 {
			parts = append(parts, d.s.Scaled("disk.busy", result.Ratio, 1/float64(d.most)))
		}
	}
	return hoststat.Combine("disk.busy", parts, hoststat.Max)
}

// processNoise is the processor use from which a command is shown, in processors.
const processNoise = 0.01

// named gives the series of a process group, a mount or the like its name, such
// as process.java.cpu, and tells whether it is shown: a command that did enough.
func named(s *hoststat.Series, shown *result.Series) bool {
	kind, what, ok := strings.Cut(s.Measure, ".")
	if !ok {
		return false
	}
	busy := s.Measure != "process.cpu"
	for _, v := range s.Values {
		busy = busy || v != nil && *v >= processNoise
	}
	plain := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s.Of)
	shown.Name = kind + "." + plain + "." + what
	return busy
}
