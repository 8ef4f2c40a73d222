package reports

import (
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"krig/internal/result"
	"krig/internal/rundir"
)

// A track is one of the pictures that are stacked on one time axis.
type track struct {
	title string
	unit  string // base unit
	lines []trackLine
	limit float64 // the most that any line can reach, in the base unit; 0 when there is none to draw
	note  string  // where the limit is known from
	full  bool    // the scale ends at the limit whatever is drawn
}

// A trackLine is one series of a track.
type trackLine struct {
	name   string
	series *result.Series
	steady *float64 // its measure in the steady phase; nil when not known
	ink    ink
	dashes []vg.Length
}

// tracks are what there is of a repeat, the load above the hosts.
func (a *analysis) tracks(rep *result.Repeat, file *result.SeriesFile) []track {
	state := findRig(a.rigs, rep.Rig, rep.RigState)
	all := []track{
		loadTrack(rep, file, "Throughput", result.BytesPerSecond, "produce.throughput", "consume.throughput"),
		loadTrack(rep, file, "Rate", result.RecordsPerSecond, "produce.rate", "consume.rate"),
		loadTrack(rep, file, "Latency", result.Seconds, "produce.latency.mean", "produce.latency.p50", "produce.latency.p95", "produce.latency.p99", "produce.latency.p999", "produce.latency.max", "end_to_end.latency.p50", "end_to_end.latency.p99"),
		hostTrack(rep, file, state, "Processors busy", result.Ratio, "cpu.busy", processors),
		hostTrack(rep, file, state, "Disk writes", result.BytesPerSecond, "disk.write", diskWrite),
		hostTrack(rep, file, state, "Disk reads", result.BytesPerSecond, "disk.read", diskRead),
		hostTrack(rep, file, state, "Network received", result.BytesPerSecond, "network.receive", netIn),
		hostTrack(rep, file, state, "Network sent", result.BytesPerSecond, "network.transmit", netOut),
	}
	if len(all[0].lines) > 0 {
		all[1].lines = nil // the same curve in another unit
	}
	if highestOf(all[5]) < highestOf(all[4])/50 {
		all[5].lines = nil // nothing but metadata was read
	}
	return slices.DeleteFunc(all, func(t track) bool { return len(t.lines) == 0 })
}

// loadTrack takes series of the load as a whole.
func loadTrack(rep *result.Repeat, file *result.SeriesFile, title, unit string, names ...string) track {
	t := track{title: title, unit: unit}
	for _, name := range names {
		s := findSeries(file, "", name)
		if s == nil {
			continue
		}
		line := trackLine{name: loadName(name), series: s, steady: rep.Measures[name].Value}
		line.ink, line.dashes = seriesInk(len(t.lines))
		t.lines = append(t.lines, line)
	}
	return t
}

// loadName is the part of a measure's name that tells it from the others of its track.
func loadName(name string) string {
	switch {
	case strings.HasPrefix(name, "produce.latency."):
		return strings.TrimPrefix(name, "produce.latency.")
	case strings.HasPrefix(name, "end_to_end.latency."):
		return "end to end " + strings.TrimPrefix(name, "end_to_end.latency.")
	}
	verb, _, _ := strings.Cut(name, ".")
	return verb + "d"
}

// hostTrack takes one series of every host.
func hostTrack(rep *result.Repeat, file *result.SeriesFile, state *rigState, title, unit, name string, what resource) track {
	t := track{title: title, unit: unit}
	seen := map[string]int{}
	for _, host := range hostNames(file) {
		s := findSeries(file, host, name)
		if s == nil || (host == machine && what != processors) {
			continue // the machine's disks and links carry those of all hosts
		}
		line := trackLine{name: host, series: s, steady: rep.Hosts[host].Measures[name].Value}
		line.ink, line.dashes = hostInk(state, host, seen)
		t.lines = append(t.lines, line)
		t.takeLimit(state, host, what)
	}
	if p := findSeries(file, machine, "cpu.pressure"); p != nil && what == processors {
		t.lines = append(t.lines, trackLine{name: "waiting", series: p, steady: rep.Hosts[machine].Measures["cpu.pressure"].Value, ink: inkLimit, dashes: dash(2)})
	}
	if what == processors {
		t.limit, t.note, t.full = 1, "100 % is a host's own quota; machine is all of the lab's processors, waiting the time in which work waited for one", true
	}
	return t
}

// takeLimit keeps the highest limit of the hosts drawn, so that none is above it.
func (t *track) takeLimit(state *rigState, host string, what resource) {
	for _, l := range hostLimits(state, host) {
		if l.what == what && l.limit > t.limit {
			t.limit, t.note = l.limit, l.source
		}
	}
}

// hostInk gives each role a hue and each of its hosts a shade.
func hostInk(state *rigState, host string, seen map[string]int) (ink, []vg.Length) {
	if host == machine {
		return inkMachine, dash(1)
	}
	first, role := inkOther0, "other"
	if state != nil {
		if h := findHost(state.hosts, host); h != nil && h.Has(rundir.Broker) {
			first, role = inkBroker0, "broker"
		} else if h != nil && h.Has(rundir.Worker) {
			first, role = inkWorker0, "worker"
		}
	}
	n := seen[role]
	seen[role]++
	return first + ink(n%roleShades), dash(n / roleShades)
}

func hostNames(file *result.SeriesFile) []string {
	names := map[string]bool{}
	for _, s := range file.Series {
		names[s.Host] = true
	}
	delete(names, "")
	return slices.SortedFunc(maps.Keys(names), naturally)
}

func findSeries(file *result.SeriesFile, host, name string) *result.Series {
	for i := range file.Series {
		if s := &file.Series[i]; s.Host == host && s.Name == name && len(s.Times) == len(s.Values) && len(s.Times) > 0 {
			return s
		}
	}
	return nil
}

// highestOf is the largest value of a track, 0 of an empty one.
func highestOf(t track) float64 {
	top := 0.0
	for _, l := range t.lines {
		for _, v := range l.series.Values {
			if v != nil && !math.IsInf(*v, 0) {
				top = max(top, *v)
			}
		}
	}
	return top
}

// lowestOf is the smallest value above 0; 0 when there is none.
func lowestOf(t track) float64 {
	low := math.Inf(1)
	for _, l := range t.lines {
		for _, v := range l.series.Values {
			if v != nil && *v > 0 {
				low = min(low, *v)
			}
		}
	}
	if math.IsInf(low, 1) {
		return 0
	}
	return low
}
