package reports

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
)

func TestWriteGathersTheRun(t *testing.T) {
	run, r := written(t, troubled())
	var stored result.Run
	if err := run.ReadJSON(&stored, "result.json"); err != nil {
		t.Fatal(err)
	}
	if stored.Schema != 1 || stored.Run != run.ID || stored.Name != "disks" || stored.Seed != 42 || stored.Order != "blocked" || !stored.Started.Equal(began) {
		t.Errorf("result.json begins %+v", stored)
	}
	if len(stored.Cells) != 6 || len(stored.Answer) == 0 || stored.Answer[0] != r.Answer[0] {
		t.Fatalf("%d cells, answer %q", len(stored.Cells), stored.Answer)
	}
	cells := map[string]result.Cell{}
	for _, c := range stored.Cells {
		cells[c.ID] = c
	}
	missing := cells["brokers-3-hdd"]
	if len(missing.Missing) != 1 || missing.Missing[0] != 3 || len(missing.Repeats) != 2 {
		t.Errorf("brokers-3-hdd: missing %v, %d repeats", missing.Missing, len(missing.Repeats))
	}
	if want := "repeat 3 of 3 brokers, hdd is missing: it was not measured"; len(stored.Warnings) != 1 || stored.Warnings[0] != want {
		t.Errorf("warnings %q", stored.Warnings)
	}
	invalid := cells["brokers-2-ssd"]
	if len(invalid.Repeats) != 3 || invalid.Summary["produce.throughput"].N != 2 {
		t.Errorf("brokers-2-ssd: %d repeats, n = %d", len(invalid.Repeats), invalid.Summary["produce.throughput"].N)
	}
	if axes := invalid.Axes; axes["rigs.bench-lab.brokers.count"] != "2" || axes["rigs.bench-lab.brokers.disk.profile"] != "ssd" {
		t.Errorf("axes %v", axes)
	}
	if !strings.HasPrefix(cells["brokers-3-ssd"].Limit, "the lab machine itself") {
		t.Errorf("limit %q", cells["brokers-3-ssd"].Limit)
	}
}

func TestSummaries(t *testing.T) {
	_, r := written(t, disks(3))
	two := r.Cells[1]
	s := two.Summary["produce.throughput"]
	var values []float64
	for _, rep := range two.Repeats {
		v, _ := rep.Measures.Get("produce.throughput")
		values = append(values, v)
	}
	if *s.Median != median(values) || s.N != 3 || s.Method != methodLogT || s.Unit != result.BytesPerSecond || *s.Low >= *s.Median || *s.High <= *s.Median {
		t.Errorf("throughput: %+v of %v", s, values)
	}
	// The gain of the second broker over the gain of one hundred percent that is proportional.
	want := ratioOf(samples(&r.Cells[0], "produce.throughput"), values).ratio - 1
	e := two.Summary["scaling.efficiency"]
	if !near(*e.Median, want) || e.Unit != result.Ratio || e.Low == nil || !strings.Contains(e.Method, "brokers-1-ssd") {
		t.Errorf("scaling.efficiency: %+v, want %v", e, want)
	}
	if _, ok := r.Cells[0].Summary["scaling.efficiency"]; ok {
		t.Error("the smallest cell has an efficiency")
	}
	if d := two.Summary["share.disk"]; *d.Median < 0.9 || *d.Median > 1.1 || d.N != 3 {
		t.Errorf("share.disk: %+v", d)
	}
}

func TestLimitedByLabMachineMakesNoStatementAboutScaling(t *testing.T) {
	_, r := written(t, troubled())
	for _, c := range r.Cells {
		if _, ok := c.Summary["scaling.efficiency"]; ok && c.ID == "brokers-3-ssd" {
			t.Error("a cell limited by the lab machine has a scaling.efficiency")
		}
	}
	if !strings.Contains(r.Answer[0], "no statement is made from 2 to 3 brokers (the lab machine itself was the limit with 3 brokers)") {
		t.Errorf("answer: %s", r.Answer[0])
	}
}

// What was tried again is shown beside the repeat that came of it, and counts for nothing.
func TestEarlierAttempts(t *testing.T) {
	run := disks(1).write(t)
	var rep result.Repeat
	if err := run.ReadJSON(&rep, "cells", "brokers-2-hdd", "1", "result.json"); err != nil {
		t.Fatal(err)
	}
	rep.Status, rep.Reason = result.Invalid, "broker b1 died:\n  killed\n"
	if err := run.WriteJSON(rep, "cells", "brokers-2-hdd", "1.1", "result.json"); err != nil {
		t.Fatal(err)
	}
	if err := run.WriteFile([]byte("cut off"), "cells", "brokers-2-hdd", "1.2", "load", "w1.log"); err != nil {
		t.Fatal(err) // an attempt that never came to a result
	}
	r, err := Write(run)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Cells[4]
	if len(c.Earlier) != 1 || len(c.Repeats) != 1 || c.Summary["produce.throughput"].N != 1 {
		t.Errorf("%d earlier, %d repeats, n = %d", len(c.Earlier), len(c.Repeats), c.Summary["produce.throughput"].N)
	}
	for _, s := range r.Answer {
		if strings.Contains(s, "not counted") {
			t.Errorf("a repeat that was made again is told as lost: %s", s)
		}
	}
	var out bytes.Buffer
	if err := Text(&out, run, r); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	if want := "repeat 1, attempt 1, of 2 brokers, hdd is not counted: invalid: broker b1 died: killed; it showed throughput"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, out.String())
	}
	page, err := os.ReadFile(run.Path("report.html"))
	if err != nil || !strings.Contains(string(page), "cells/brokers-2-hdd/1.1/") || !strings.Contains(string(page), "tried again") {
		t.Errorf("the page does not show the earlier attempt (%v)", err)
	}
}

func TestGatheredValues(t *testing.T) {
	run, _ := written(t, disks(1))
	var clusters []struct {
		Rig      string `json:"rig"`
		RigState int    `json:"rig_state"`
		Cluster  int    `json:"cluster"`
		Brokers  []struct {
			Host      string            `json:"host"`
			Effective map[string]string `json:"effective"`
		} `json:"brokers"`
	}
	if err := run.ReadJSON(&clusters, "cluster.json"); err != nil {
		t.Fatal(err)
	}
	if len(clusters) != 6 || clusters[2].RigState != 3 || len(clusters[2].Brokers) != 3 || clusters[2].Brokers[0].Effective["num.io.threads"] != "8" {
		t.Errorf("cluster.json: %+v", clusters)
	}
	var hosts []struct {
		Rig   string        `json:"rig"`
		Hosts []rundir.Host `json:"hosts"`
	}
	if err := run.ReadJSON(&hosts, "hosts.json"); err != nil {
		t.Fatal(err)
	}
	if len(hosts) != 6 || hosts[0].Rig != "bench-lab" || len(hosts[0].Hosts) != 4 || hosts[0].Hosts[0].Name != "b1" {
		t.Errorf("hosts.json: %+v", hosts)
	}
	var env environment
	if err := run.ReadJSON(&env, "environment.json"); err != nil {
		t.Fatal(err)
	}
	if len(env.Settings) != 1 || env.Settings[0].Key != "log.flush.interval.messages" || env.Settings[0].Asked != "10000" || *env.Settings[0].Effective != "9000" || strings.Join(env.Settings[0].Brokers, " ") != "b1 b2 b3" {
		t.Errorf("settings that differ: %+v", env.Settings)
	}
	if strings.Join(env.Kafka, " ") != "4.4.0" || strings.Join(env.Java, " ") != "17.0.19" || *env.Hosts[0].Limits.DiskWrite != 30*mebi || env.Hosts[0].Facts.Processors != 2 {
		t.Errorf("environment: %+v", env)
	}
}

// nonNumber finds what no reader of JSON takes.
var nonNumber = regexp.MustCompile(`\b(NaN|Inf|Infinity)\b`)

func TestWriteOfEveryVariant(t *testing.T) {
	for name, make := range variants() {
		t.Run(name, func(t *testing.T) {
			run, r := written(t, make())
			for _, file := range []string{"result.json", "hosts.json", "cluster.json", "environment.json"} {
				data, err := os.ReadFile(run.Path(file))
				if err != nil {
					t.Fatal(err)
				}
				if !json.Valid(data) || nonNumber.Match(data) {
					t.Errorf("%s is not fit for reading", file)
				}
			}
			// The page and the text of a run that is read again are the same.
			var again bytes.Buffer
			if err := HTML(&again, run, r); err != nil {
				t.Fatal(err)
			}
			page, err := os.ReadFile(run.Path("report.html"))
			if err != nil || !bytes.Equal(page, again.Bytes()) {
				t.Errorf("the page is not the same when it is written again (%v)", err)
			}
			if nonNumber.Match(page) {
				t.Errorf("the page shows %s", nonNumber.Find(page))
			}
			if len(page) > 3<<20 {
				t.Errorf("the page has %d bytes", len(page))
			}
		})
	}
}

func TestCSV(t *testing.T) {
	s := troubled()
	s.steady, s.repeats = 6, 2
	_, r := written(t, s)
	r.Cells[0].Repeats[0].Measures.SetUnknown("availability", result.Ratio, "no consumer ran")
	var out bytes.Buffer
	if err := CSV(&out, r); err != nil {
		t.Fatal(err)
	}
	golden(t, "troubled.csv", out.Bytes())
}

// A page of long and many series is thinned to a size that a browser takes.
func TestLongRunsStaySmall(t *testing.T) {
	s := disks(3)
	s.steady = 900
	run, _ := written(t, s)
	info, err := os.Stat(run.Path("report.html"))
	if err != nil || info.Size() > 4<<20 {
		t.Errorf("%v bytes (%v)", info.Size(), err)
	}
}

func TestNoPlanIsAnError(t *testing.T) {
	run := &rundir.Run{Dir: t.TempDir(), ID: "x"}
	if _, err := Write(run); err == nil || !strings.HasPrefix(err.Error(), "reading the plan: ") {
		t.Errorf("got %v", err)
	}
}

// A damaged repeat is named, never passed over.
func TestDamagedRepeat(t *testing.T) {
	run := disks(1).write(t)
	if err := run.WriteFile([]byte(`{"schema":`), "cells", "brokers-2-hdd", "1", "result.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(run); err == nil || !strings.HasPrefix(err.Error(), "reading repeat 1 of cell brokers-2-hdd: ") {
		t.Errorf("got %v", err)
	}
}

// A damaged series costs its own pictures; the page says so.
func TestDamagedSeries(t *testing.T) {
	run := disks(1).write(t)
	if err := run.WriteFile([]byte(`{"schema":`), "cells", "brokers-2-hdd", "1", "series.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(run); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(run.Path("report.html"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(page), "there are no pictures: reading the series of 1 of cell brokers-2-hdd"); n != 1 {
		t.Errorf("the page says %d times that the series cannot be read", n)
	}
}

// A cell whose block varies nothing is called by what the block sets.
func TestCellOfItsOwnBlock(t *testing.T) {
	s := disks(1)
	c := diskCell(1, "ssd")
	c.ID, c.Bench.Driver = "driver-perftest", "perftest"
	c.Axes = []experiment.Axis{{Path: "bench.driver", Value: "perftest"}}
	s.add(c)
	run := s.write(t)
	r, err := Write(run)
	if err != nil {
		t.Fatal(err)
	}
	a, err := analyse(run, r)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.cells[len(a.cells)-1].name; got != "driver perftest" {
		t.Errorf("it is called %q", got)
	}
}

// What stands in an experiment's values is text in the page, never markup.
func TestHostileWords(t *testing.T) {
	s := oneCell()
	s.plan.Name = `<img src=x onerror=alert(1)>`
	s.change = func(_ *experiment.Cell, rep *result.Repeat, f *result.SeriesFile) bool {
		rep.Warnings = append(rep.Warnings, `</script><script>alert(2)</script>`)
		f.Series[3].Host = `"><svg onload=alert(3)>`
		rep.Load = []string{"</pre><b>"}
		return true
	}
	run, _ := written(t, s)
	page, err := os.ReadFile(run.Path("report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<img src=x", "<script>alert", "<svg onload", "</pre><b>"} {
		if strings.Contains(string(page), bad) {
			t.Errorf("the page contains %s", bad)
		}
	}
}
