package reports

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
)

// synthetic builds a run directory as the other stages would have left it. It
// is the same at every call: its noise comes from a fixed seed.
type synthetic struct {
	plan    *experiment.Plan
	repeats int
	warmup  int // seconds
	steady  int // seconds
	load    func(c *experiment.Cell, n int) loadOf
	change  func(c *experiment.Cell, rep *result.Repeat, s *result.SeriesFile) bool // false: the repeat is not written
	states  map[string]int                                                          // rig state by number of hosts and disk
	noise   *rand.Rand
}

// loadOf is what one repeat of a synthetic cell does.
type loadOf struct {
	throughput float64 // B/s in all
	cpu        float64 // busy part of each broker
	machine    float64 // busy part of the lab machine
	latency    float64 // median, seconds
}

const mebi = 1 << 20

var began = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// profile is what a disk profile writes, in B/s.
func profile(name string) float64 {
	return map[string]float64{"ssd": 30 * mebi, "hdd": 12 * mebi}[name]
}

// disks is the run of an experiment with brokers 1 to 3 on ssd and on hdd.
func disks(repeats int) *synthetic {
	s := &synthetic{repeats: repeats, warmup: 5, steady: 20, plan: &experiment.Plan{Name: "disks", Seed: 42, Order: "blocked"}}
	for _, disk := range []string{"ssd", "hdd"} {
		for n := 1; n <= 3; n++ {
			s.add(diskCell(n, disk))
		}
	}
	s.load = diskLoad
	return s
}

func diskCell(n int, disk string) *experiment.Cell {
	c := &experiment.Cell{
		ID: fmt.Sprintf("brokers-%d-%s", n, disk), RigName: "bench-lab",
		Axes: []experiment.Axis{
			{Path: "rigs.bench-lab.brokers.count", Value: strconv.Itoa(n)},
			{Path: "rigs.bench-lab.brokers.disk.profile", Value: disk},
		},
	}
	c.Rig.Brokers.Count, c.Rig.Workers.Count = n, 3
	c.Rig.Brokers.Disk.Profile = disk
	c.Bench.Driver = "native"
	c.Bench.Rate.Max = true
	return c
}

// diskLoad fills the disks, until with three ssd the processors are short.
func diskLoad(c *experiment.Cell, _ int) loadOf {
	n := float64(c.Rig.Brokers.Count)
	l := loadOf{throughput: n * 0.97 * profile(c.Rig.Brokers.Disk.Profile), machine: 0.2 + 0.2*n, cpu: 0.15 + 0.1*n, latency: 0.05}
	if c.Rig.Brokers.Disk.Profile == "hdd" {
		l.machine, l.latency = 0.15+0.08*n, 0.14
	}
	return l
}

func (s *synthetic) add(cells ...*experiment.Cell) {
	s.plan.Cells = append(s.plan.Cells, cells...)
}

// write makes the directory below the test's own.
func (s *synthetic) write(t testing.TB) *rundir.Run {
	t.Helper()
	dir := t.TempDir()
	run := &rundir.Run{Dir: dir, ID: s.plan.Name + "-20261130T090000Z-abc123", Short: "abc123"}
	s.noise = rand.New(rand.NewPCG(1, 2))
	s.states = map[string]int{}
	s.plan.Visits = nil
	for i := range s.plan.Cells {
		for n := 1; n <= s.repeats; n++ {
			s.plan.Visits = append(s.plan.Visits, experiment.Visit{Cell: i, Repeat: n})
		}
	}
	s.must(t, run.WriteJSON(s.plan, "plan.json"))
	s.must(t, run.WriteFile([]byte("version: 1\nname: "+s.plan.Name+"\n"), "effective.yaml"))
	at := began
	for _, v := range s.plan.Visits {
		c := s.plan.Cells[v.Cell]
		rep, series := s.repeat(c, v.Repeat, s.state(t, run, c), at)
		at = rep.Ended.Add(20 * time.Second)
		if s.change != nil && !s.change(c, rep, series) {
			continue
		}
		s.must(t, run.WriteJSON(rep, "cells", c.ID, strconv.Itoa(v.Repeat), "result.json"))
		s.must(t, run.WriteJSON(series, "cells", c.ID, strconv.Itoa(v.Repeat), "series.json"))
	}
	return run
}

func (s *synthetic) must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// state writes the rig's state that the cell needs, once, and tells its number.
func (s *synthetic) state(t testing.TB, run *rundir.Run, c *experiment.Cell) int {
	key := fmt.Sprintf("%s %d %s %d", c.RigName, c.Rig.Brokers.Count, c.Rig.Brokers.Disk.Profile, c.Rig.Workers.Count)
	if n, ok := s.states[key]; ok {
		return n
	}
	n := len(s.states) + 1
	s.states[key] = n
	hosts := s.hosts(c)
	prepared := rundir.Prepared{}
	limits := rundir.Limits{Hosts: map[string]rundir.HostLimits{}}
	cluster := rundir.Cluster{ID: "kid", Version: "4.4.0", Mode: "kraft", Started: began}
	for i, h := range hosts {
		prepared.Hosts = append(prepared.Hosts, rundir.PreparedHost{Name: h.Name, Facts: rundir.Facts{
			OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0-28-cloud-amd64", CPUModel: "AMD EPYC 9R14", Processors: 2,
			Memory: 2 << 30, Java: "17.0.19", JavaMajor: 17, Sysstat: "12.6.1", JVMStart: 0.41,
		}})
		limits.Hosts[h.Name] = hostLimit(h)
		if h.Has(rundir.Broker) {
			cluster.Brokers = append(cluster.Brokers, rundir.Node{ID: int32(i + 1), Host: h.Name, Listener: h.Internal + ":9092",
				Asked:     map[string]string{"num.io.threads": "8", "log.flush.interval.messages": "10000", "log.retention.bytes": "1e3"},
				Effective: map[string]string{"num.io.threads": "8", "log.flush.interval.messages": "9000", "log.retention.bytes": "1000"}})
		}
	}
	rig := []string{"rigs", c.RigName, strconv.Itoa(n)}
	s.must(t, run.WriteJSON(hosts, append(rig, "hosts.json")...))
	s.must(t, run.WriteJSON(prepared, append(rig, "prepared.json")...))
	s.must(t, run.WriteJSON(limits, append(rig, "limits.json")...))
	s.must(t, run.WriteJSON(cluster, append(rig, "clusters", "1.json")...))
	return n
}

func hostLimit(h rundir.Host) rundir.HostLimits {
	link := float64(h.LinkRate) / 8
	l := rundir.HostLimits{Network: &link, NetSource: "shaped"}
	if len(h.Disks) > 0 {
		write, read := float64(h.Disks[0].Write), float64(h.Disks[0].Read)
		l.DiskWrite, l.DiskRead, l.DiskSource = &write, &read, "profile"
	}
	return l
}

func (s *synthetic) hosts(c *experiment.Cell) []rundir.Host {
	var out []rundir.Host
	for i := 1; i <= c.Rig.Brokers.Count; i++ {
		p := int64(profile(c.Rig.Brokers.Disk.Profile))
		out = append(out, rundir.Host{Name: fmt.Sprintf("b%d", i), Roles: []rundir.Role{rundir.Broker}, Internal: fmt.Sprintf("10.89.0.1%d", i),
			LinkRate: 1e9, Memory: 2 << 30, CPUs: 1, Arch: "amd64", Lab: true,
			Disks: []rundir.Disk{{Device: fmt.Sprintf("/dev/loop%d", i), Size: 8 << 30, Profile: c.Rig.Brokers.Disk.Profile, Write: p, Read: 2 * p}}})
	}
	for i := 1; i <= c.Rig.Workers.Count; i++ {
		out = append(out, rundir.Host{Name: fmt.Sprintf("w%d", i), Roles: []rundir.Role{rundir.Worker}, Internal: fmt.Sprintf("10.89.0.2%d", i),
			LinkRate: 1e9, Memory: 2 << 30, Arch: "amd64", Lab: true})
	}
	return out
}

// around is v with some noise.
func (s *synthetic) around(v, spread float64) float64 {
	return round(v * math.Exp(spread*s.noise.NormFloat64()))
}

// round keeps six digits, so that golden files do not hang on the last bit of
// a machine's arithmetic.
func round(v float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', 5, 64), 64)
	if err != nil {
		panic(err)
	}
	return v
}

// repeat makes one repeat with its series.
func (s *synthetic) repeat(c *experiment.Cell, n, state int, at time.Time) (*result.Repeat, *result.SeriesFile) {
	l := s.load(c, n)
	l.throughput = s.around(l.throughput, 0.01)
	warm := at.Add(3 * time.Second)
	steady := warm.Add(time.Duration(s.warmup) * time.Second)
	end := steady.Add(time.Duration(s.steady) * time.Second)
	phases := []result.Phase{{Name: "warmup", Start: warm, End: steady}, {Name: "steady", Start: steady, End: end}}
	rep := &result.Repeat{
		Schema: 1, Cell: c.ID, Repeat: n, Attempt: 1, Rig: c.RigName, RigState: state, Cluster: 1, Status: result.Valid,
		Marks: []string{result.AtSaturation}, Warnings: []string{}, Started: at, Ended: end.Add(2 * time.Second), Phases: phases,
		Measures: result.Measures{}, Hosts: map[string]result.HostResult{}, Load: []string{"native: acks=1, batch.size=131072"},
		Settle: result.Settle{Seconds: 1.2},
	}
	rep.Measures.Set("produce.throughput", l.throughput, result.BytesPerSecond)
	rep.Measures.Set("produce.rate", round(l.throughput/1024), result.RecordsPerSecond)
	rep.Measures.Set("produce.errors", 0, result.Records)
	for i, q := range []string{"p50", "p95", "p99", "p999"} {
		rep.Measures.Set("produce.latency."+q, s.around(l.latency*[]float64{1, 1.8, 2.6, 4}[i], 0.03), result.Seconds)
	}
	series := &result.SeriesFile{Schema: 1, Phases: phases}
	s.loadSeries(series, l, warm, end)
	s.hostSeries(series, rep, c, l, at, end)
	return rep, series
}

func (s *synthetic) loadSeries(f *result.SeriesFile, l loadOf, from, to time.Time) {
	for _, m := range []struct {
		name, unit string
		value      float64
		spread     float64
	}{{"produce.throughput", result.BytesPerSecond, l.throughput, 0.06}, {"produce.latency.p50", result.Seconds, l.latency, 0.1}, {"produce.latency.p99", result.Seconds, l.latency * 2.6, 0.2}} {
		line := result.Series{Name: m.name, Unit: m.unit}
		for t := from.Add(time.Second); !t.After(to); t = t.Add(time.Second) {
			ramp := 1 - math.Exp(-t.Sub(from).Seconds()/2)
			if m.unit == result.Seconds {
				ramp = 1
			}
			add(&line, t, s.around(m.value*ramp, m.spread))
		}
		f.Series = append(f.Series, line)
	}
}

// hostSeries makes what the collectors saw, from before the load to after it.
func (s *synthetic) hostSeries(f *result.SeriesFile, rep *result.Repeat, c *experiment.Cell, l loadOf, at, end time.Time) {
	brokers, workers := float64(c.Rig.Brokers.Count), float64(c.Rig.Workers.Count)
	for _, h := range s.hosts(c) {
		use := map[string]float64{"cpu.busy": l.cpu, "network.receive": l.throughput / brokers * 1.02, "network.transmit": l.throughput / brokers * 0.02,
			"disk.write": l.throughput / brokers, "disk.read": 0}
		if h.Has(rundir.Worker) {
			use = map[string]float64{"cpu.busy": 0.12, "network.receive": l.throughput / workers * 0.02, "network.transmit": l.throughput / workers * 1.02}
		}
		rep.Hosts[h.Name] = s.host(f, rep, h.Name, use, at, end)
	}
	rep.Hosts[machine] = s.host(f, rep, machine, map[string]float64{"cpu.busy": l.machine}, at, end)
}

func (s *synthetic) host(f *result.SeriesFile, rep *result.Repeat, name string, use map[string]float64, at, end time.Time) result.HostResult {
	out := result.HostResult{Measures: result.Measures{}}
	for _, measure := range []string{"cpu.busy", "disk.write", "disk.read", "network.receive", "network.transmit"} {
		value, ok := use[measure]
		if !ok {
			continue
		}
		unit := result.BytesPerSecond
		if strings.HasPrefix(measure, "cpu") {
			unit = result.Ratio
		}
		line := result.Series{Name: measure, Host: name, Unit: unit}
		sum, n := 0.0, 0.0
		for t := at.Add(time.Second); !t.After(end.Add(2 * time.Second)); t = t.Add(time.Second) {
			v := 0.01 * value
			if t.After(rep.Phases[0].Start) && !t.After(end) {
				v = s.around(value, 0.05)
			}
			if t.After(rep.Phases[1].Start) && !t.After(end) {
				sum, n = sum+v, n+1
			}
			add(&line, t, v)
		}
		out.Measures.Set(measure, round(sum/n), unit)
		f.Series = append(f.Series, line)
	}
	return out
}

func add(s *result.Series, t time.Time, v float64) {
	s.Times = append(s.Times, float64(t.UnixNano())/1e9)
	s.Values = append(s.Values, &v)
}
