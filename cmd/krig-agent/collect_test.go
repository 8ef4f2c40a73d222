package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"krig/bench/hoststat"
	"krig/internal/agent"
)

func TestTools(t *testing.T) {
	ask := hoststat.Ask{Dir: "/d", Interval: 2, Collectors: []string{"sar", "iostat", "pidstat"}}
	tests := []struct {
		n                     int
		name, argv, out, file string
	}{
		{1, "sar", "sar -A -o /d/sar.bin 2", "", "/d/sar.bin"},
		{1, "iostat", "iostat -o JSON -x -t loop3 2", "/d/iostat.json", "/d/iostat.json"},
		{1, "pidstat", "pidstat -h -H -u -r -d 2", "/d/pidstat.txt", "/d/pidstat.txt"},
		{2, "sar", "sar -A -o /d/sar.2.bin 2", "", "/d/sar.2.bin"},
		{2, "iostat", "iostat -o JSON -x -t loop3 2", "/d/iostat.2.json", "/d/iostat.2.json"},
		{2, "pidstat", "pidstat -h -H -u -r -d 2", "/d/pidstat.2.txt", "/d/pidstat.2.txt"},
	}
	all, err := hoststat.Asked(ask)
	if err != nil || len(all) != 3 {
		t.Fatalf("%d collectors, %v", len(all), err)
	}
	for i, tt := range tests {
		c := all[i%3]
		got := toolOf(c, ask, []string{"loop3"}, tt.n)
		if c.Name != tt.name || strings.Join(got.argv, " ") != tt.argv || got.out != tt.out || got.file != tt.file {
			t.Errorf("%s, start %d: got %q, %q, %q", c.Name, tt.n, got.argv, got.out, got.file)
		}
	}
	if _, err := hoststat.Asked(hoststat.Ask{Collectors: []string{"sar", "top"}}); err == nil {
		t.Error("an unknown collector is taken")
	}
}

func TestProcStat(t *testing.T) {
	const text = "cpu  100 20 30 4000 500 6 7 8 50 0\ncpu0 50 10 15 2000 250 3 3 4 25 0\ncpu1 50 10 15 2000 250 3 4 4 25 0\nintr 5\n"
	busy, n := procStat([]byte(text))
	if busy == nil || *busy != 1710e6 || n != 2 { // 171 ticks of 10 ms
		t.Errorf("busy %v ns of %v processors", busy, n)
	}
	if busy, _ := procStat([]byte("cpu  1 2\n")); busy != nil {
		t.Errorf("half a line: %v", *busy)
	}
}

func TestPressure(t *testing.T) {
	got := pressure([]byte("some avg10=0.24 avg60=0.36 avg300=2.06 total=85605013\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"))
	if got == nil || *got != 85605013 {
		t.Errorf("got %v", got)
	}
	if got := pressure([]byte("full avg10=0.00 total=7\n")); got != nil {
		t.Errorf("got %v", *got)
	}
}

func TestCgroupDir(t *testing.T) {
	tree := t.TempDir()
	if err := os.Mkdir(filepath.Join(tree, "mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	const own = "88 86 0:30 /libpod_parent/libpod-4 /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n" +
		"87 86 0:29 /libpod_parent/libpod-4 /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
	two := "30 23 0:26 / " + tree + " rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	tests := []struct{ name, mounts, controller, path, want string }{
		{"its own, v1", own, "cpuacct", "/libpod_parent/libpod-4", "/sys/fs/cgroup/cpuacct"},
		{"not part of a word", own, "cpu", "", "/sys/fs/cgroup/cpu"},
		{"several in one mount", "1 2 0:3 / /c rw - cgroup cgroup rw,cpu,cpuacct\n", "cpuacct", "", "/c"},
		{"not mounted", own, "memory", "", ""},
		{"its own, v2", two, "", "", tree},
		{"the whole tree, v2", two, "", "/mine", filepath.Join(tree, "mine")},
		{"v1 has no unified tree", own, "", "", ""},
	}
	for _, tt := range tests {
		if got := cgroupDir([]byte(tt.mounts), tt.controller, tt.path); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCgroupFigures(t *testing.T) {
	write := func(dir string, files map[string]string) {
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	one, two := t.TempDir(), t.TempDir()
	write(one, map[string]string{
		"cpuacct.usage": "15998202\n", "cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n",
		"memory.usage_in_bytes": "1000\n", "memory.limit_in_bytes": "5000\n", "memory.stat": "cache 1\ntotal_inactive_file 300\ntotal_active_file 100\n",
	})
	write(two, map[string]string{
		"cpu.stat": "usage_usec 15998\nuser_usec 1\n", "cpu.max": "150000 100000\n",
		"memory.current": "1000\n", "memory.max": "max\n", "memory.stat": "inactive_file 300\nactive_file 100\n",
	})
	tests := []struct {
		name, mounts     string
		cpu, used, limit int64 // limit 0 is none
		processors       float64
	}{
		{"v1", "1 2 0:3 /x " + one + " rw - cgroup cgroup rw,cpu,cpuacct,memory\n", 15998202, 600, 5000, 0.5},
		{"v2", "1 2 0:3 / " + two + " rw - cgroup2 cgroup2 rw\n", 15998000, 600, 0, 1.5},
	}
	for _, tt := range tests {
		var o hoststat.Own
		cgroupFigures([]byte(tt.mounts), "")(&o)
		if o.CPU == nil || *o.CPU != tt.cpu || o.Used == nil || *o.Used != tt.used || o.Processors != tt.processors ||
			(o.Limit == nil) != (tt.limit == 0) || o.Limit != nil && *o.Limit != tt.limit {
			t.Errorf("%s: %+v", tt.name, o)
		}
	}
}

// collecting is a running collect verb of a real agent.
type collecting struct {
	call *agent.Call
	said []agent.Message
	end  error
	over chan struct{}
}

func collectFor(t testing.TB, s *started, ask hoststat.Ask) *collecting {
	t.Helper()
	call, err := s.Call(t.Context(), "collect", ask)
	if err != nil {
		t.Fatal(err)
	}
	c := &collecting{call: call, over: make(chan struct{})}
	first, err := call.Next(t.Context())
	c.said = append(c.said, first)
	for err == nil && first.Kind == hoststat.Hole {
		first, err = call.Next(t.Context())
		c.said = append(c.said, first)
	}
	if err != nil || first.Kind != hoststat.Ready {
		t.Fatalf("%s, %v", first.Kind, err)
	}
	go func() {
		defer close(c.over)
		for {
			m, err := call.Next(t.Context())
			if err != nil {
				c.end = err
				return
			}
			c.said = append(c.said, m)
		}
	}()
	return c
}

// stop cancels and returns the list of files and the holes.
func (c *collecting) stop(t testing.TB) (files hoststat.Files, holes []string) {
	t.Helper()
	if err := c.call.Cancel(); err != nil {
		t.Fatal(err)
	}
	<-c.over
	if !errors.Is(c.end, io.EOF) {
		t.Fatal(c.end)
	}
	for _, m := range c.said {
		var hole string
		switch m.Kind {
		case hoststat.Filled:
			if err := json.Unmarshal(m.Body, &files); err != nil {
				t.Fatal(err)
			}
		case hoststat.Hole:
			if err := json.Unmarshal(m.Body, &hole); err != nil {
				t.Fatal(err)
			}
			holes = append(holes, hole)
		}
	}
	return files, holes
}

func needSysstat(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("sadf"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("sysstat is not installed")
		}
		t.Skip("sysstat is not installed")
	}
}

func TestCollectWithoutSysstat(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	c := collectFor(t, startAgent(t), hoststat.Ask{Dir: t.TempDir(), Interval: 1, Limit: 60, Collectors: []string{"sar", "iostat"}})
	files, holes := c.stop(t)
	if len(holes) != 2 || !strings.Contains(strings.Join(holes, "|"), "sar is not installed (package sysstat)") {
		t.Errorf("holes %q", holes)
	}
	if !slices.Equal(files.Names, []string{"own.jsonl"}) {
		t.Errorf("files %q", files.Names)
	}
}

func TestCollectRefuses(t *testing.T) {
	for _, ask := range []hoststat.Ask{{Dir: "/tmp/x", Limit: 1}, {Dir: "relative", Interval: 1, Limit: 1}, {Dir: "/tmp/x", Interval: 1}} {
		call, err := startAgent(t).Call(t.Context(), "collect", ask)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := call.Next(t.Context()); err == nil {
			t.Errorf("%+v: %s", ask, m.Kind)
		}
	}
}

// At its time limit a collection ends by itself; its files are whole.
func TestCollectEndsByItself(t *testing.T) {
	needSysstat(t)
	c := collectFor(t, startAgent(t), hoststat.Ask{Dir: t.TempDir(), Interval: 1, Limit: 3, Collectors: []string{"iostat"}, Watch: "/"})
	select {
	case <-c.over:
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	levels := 0
	for _, m := range c.said {
		if m.Kind == hoststat.Level {
			levels++
		}
	}
	if levels < 2 || !errors.Is(c.end, io.EOF) {
		t.Errorf("%d levels, %v", levels, c.end)
	}
}

// costLength is how long collectors are watched for what they cost.
const costLength = 10 * time.Second

// The agent and its collectors may use 1 % of one processor at 1 s.
func TestCollectorsCost(t *testing.T) {
	const most = 0.01
	used, files, holes := collectorsCost(t)
	t.Logf("%.2f %% of one processor; files %q", 100*used, files.Names)
	if used > most {
		t.Errorf("the agent and its collectors use %.2f %% of one processor, more than %v %%", 100*used, 100*most)
	}
	if len(holes) > 0 || !slices.Equal(files.Names, []string{"iostat.json", "own.jsonl", "sar.json"}) {
		t.Errorf("files %q, holes %q", files.Names, holes)
	}
	switch {
	case files.Cost == nil:
		t.Error("the agent does not tell what collecting cost")
	case *files.Cost <= 0 || *files.Cost > used+0.005:
		t.Errorf("by the agent collecting took %.2f %% of one processor, by its processes %.2f %%", 100**files.Cost, 100*used)
	}
}

// BenchmarkCollectors tells what part of one processor an agent with sar and
// iostat at 1 s takes on one host, in percent.
func BenchmarkCollectors(b *testing.B) {
	for b.Loop() {
		used, _, _ := collectorsCost(b)
		b.ReportMetric(100*used, "%-of-a-core")
	}
}

// collectorsCost is the processor time a second that a whole agent takes which
// collects at 1 s.
func collectorsCost(tb testing.TB) (used float64, files hoststat.Files, holes []string) {
	tb.Helper()
	needSysstat(tb)
	s := startAgent(tb)
	ask := hoststat.Ask{Dir: tb.TempDir(), Interval: 1, Limit: 60, Collectors: []string{"sar", "iostat"}, Watch: "/"}
	c := collectFor(tb, s, ask)
	leader := (<-s.process).Pid
	time.Sleep(time.Second) // starting is not counted
	before := sessionTime(tb, leader)
	time.Sleep(costLength)
	used = (sessionTime(tb, leader) - before).Seconds() / costLength.Seconds()
	files, holes = c.stop(tb)
	return used, files, holes
}

// sessionTime is the processor time of all processes of a session.
func sessionTime(t testing.TB, leader int) time.Duration {
	t.Helper()
	var sum time.Duration
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // gone
		}
		f := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		if len(f) < 4 || f[3] != strconv.Itoa(leader) {
			continue
		}
		threads, err := filepath.Glob(filepath.Join(filepath.Dir(path), "task", "*", "schedstat"))
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			if data, err = os.ReadFile(thread); err != nil {
				continue
			}
			ns, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += time.Duration(ns)
		}
	}
	if sum == 0 {
		t.Fatal("no process of the agent's session")
	}
	return sum
}
