package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"krig/bench/hoststat"
)

// userHZ is how the kernel counts processor time in /proc/stat, on every
// architecture that krig runs on.
const userHZ = 100

// unlimited is what a limit of memory is at least when there is none.
const unlimited = 1 << 60

// sampler takes our own samples and writes them down.
type sampler struct {
	out    *os.File
	watch  string
	read   func(*hoststat.Own)
	cgroup bool
}

func newSampler(ask hoststat.Ask) (*sampler, error) {
	s := &sampler{watch: ask.Watch, cgroup: ask.Cgroup, read: machineFigures}
	if ask.Cgroup {
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return nil, err
		}
		s.read = cgroupFigures(mounts, ask.Path)
	}
	var err error
	s.out, err = os.Create(filepath.Join(ask.Dir, "own.jsonl"))
	return s, err
}

func (s *sampler) close() { s.out.Close() }

// take takes a sample and writes it as one line.
func (s *sampler) take() (hoststat.Own, error) {
	o := hoststat.Own{At: time.Now().UTC()}
	s.read(&o)
	if s.watch != "" {
		var fs syscall.Statfs_t
		if syscall.Statfs(s.watch, &fs) == nil {
			free, size := int64(fs.Bavail)*fs.Bsize, int64(fs.Blocks)*fs.Bsize
			o.Free, o.Size = &free, &size
		}
	}
	line, err := json.Marshal(o)
	if err == nil {
		_, err = s.out.Write(append(line, '\n'))
	}
	return o, err
}

// machineFigures reads a whole machine's processor time and pressure.
func machineFigures(o *hoststat.Own) {
	if data, err := os.ReadFile("/proc/stat"); err == nil {
		o.CPU, o.Processors = procStat(data)
	}
	if data, err := os.ReadFile("/proc/pressure/cpu"); err == nil {
		o.Pressure = pressure(data)
	}
}

// procStat is the time that all processors were busy, in ns, and their number.
// Idle and waiting for a disk are not busy; a guest's time is in user's already.
func procStat(data []byte) (busy *int64, processors float64) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 9 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		if f[0] != "cpu" {
			processors++
			continue
		}
		var ticks int64
		for _, column := range []int{1, 2, 3, 6, 7, 8} { // user nice system irq softirq steal
			n, err := strconv.ParseInt(f[column], 10, 64)
			if err != nil {
				return nil, 0
			}
			ticks += n
		}
		ns := ticks * int64(time.Second/userHZ)
		busy = &ns
	}
	return busy, processors
}

// pressure is the total of the line "some avg10=... total=N", in µs.
func pressure(data []byte) *int64 {
	for line := range strings.Lines(string(data)) {
		_, total, ok := strings.Cut(strings.TrimSpace(line), " total=")
		if !strings.HasPrefix(line, "some ") || !ok {
			continue
		}
		if n, err := strconv.ParseInt(total, 10, 64); err == nil {
			return &n
		}
	}
	return nil
}

// cgroupFigures reads a host that is a cgroup. path is its cgroup below each
// controller's mount, for where a host sees the whole tree; where it sees only
// its own, the mount is it.
func cgroupFigures(mountinfo []byte, path string) func(*hoststat.Own) {
	cpu := cgroupDir(mountinfo, "cpuacct", path)
	quota := cgroupDir(mountinfo, "cpu", path)
	memory := cgroupDir(mountinfo, "memory", path)
	two := cgroupDir(mountinfo, "", path)
	return func(o *hoststat.Own) {
		if cpu != "" {
			o.CPU = readInt(cpu, "cpuacct.usage")
		} else {
			o.CPU = scale(readKey(two, "cpu.stat", "usage_usec"), 1000)
		}
		o.Processors = processors(quota, two)
		if memory != "" {
			o.Used = less(readInt(memory, "memory.usage_in_bytes"), readKey(memory, "memory.stat", "total_inactive_file"), readKey(memory, "memory.stat", "total_active_file"))
			o.Limit = readInt(memory, "memory.limit_in_bytes")
		} else {
			o.Used = less(readInt(two, "memory.current"), readKey(two, "memory.stat", "inactive_file"), readKey(two, "memory.stat", "active_file"))
			o.Limit = readInt(two, "memory.max")
		}
		if o.Limit != nil && *o.Limit > unlimited {
			o.Limit = nil
		}
	}
}

// cgroupDir is where a controller's files of this host are; the unified tree's
// for "". It is "" where that is not mounted.
func cgroupDir(mountinfo []byte, controller, path string) string {
	for line := range strings.Lines(string(mountinfo)) {
		left, right, ok := strings.Cut(line, " - ")
		f, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 5 || len(kind) < 3 {
			continue
		}
		unified := kind[0] == "cgroup2" && controller == ""
		own := kind[0] == "cgroup" && controller != "" && hasWord(kind[2], controller)
		if !unified && !own {
			continue
		}
		if dir := filepath.Join(f[4], path); path != "" && isDir(dir) {
			return dir
		}
		return f[4]
	}
	return ""
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// processors is how many processors the quota lets a host use.
func processors(quota, two string) float64 {
	if quota != "" {
		q, p := readInt(quota, "cpu.cfs_quota_us"), readInt(quota, "cpu.cfs_period_us")
		if q != nil && p != nil && *q > 0 && *p > 0 {
			return float64(*q) / float64(*p)
		}
		return float64(runtime.NumCPU())
	}
	data, err := os.ReadFile(filepath.Join(two, "cpu.max"))
	var q, p int64
	if err == nil {
		if _, err = fmt.Sscanf(string(data), "%d %d", &q, &p); err == nil && p > 0 {
			return float64(q) / float64(p)
		}
	}
	return float64(runtime.NumCPU()) // "max", or no such file: not limited
}

// readInt reads a file that is one number; nil when it is not.
func readInt(dir, name string) *int64 {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if dir == "" || err != nil {
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range: no limit
		return nil
	}
	return &n
}

// readKey reads one line "KEY NUMBER" of a file; nil when it is not there.
func readKey(dir, name, key string) *int64 {
	data, err := os.ReadFile(filepath.Join(dir, name))
	if dir == "" || err != nil {
		return nil
	}
	for line := range strings.Lines(string(data)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseInt(v, 10, 64); k == key && err == nil {
			return &n
		}
	}
	return nil
}

func scale(n *int64, by int64) *int64 {
	if n == nil {
		return nil
	}
	out := *n * by
	return &out
}

// less is a number without others; nil when one is not known.
func less(n *int64, others ...*int64) *int64 {
	if n == nil {
		return nil
	}
	out := *n
	for _, o := range others {
		if o == nil {
			return nil
		}
		out -= *o
	}
	return &out
}
