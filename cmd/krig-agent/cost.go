package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cost is the processor time that collecting takes: of the collectors, and of
// the thread that takes our own samples.
type cost struct {
	mu      sync.Mutex
	running map[int]bool  // process groups of the collectors that run
	spent   time.Duration // by those that have ended
}

func (c *cost) began(group int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[group] = true
}

func (c *cost) ended(group int, s *os.ProcessState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, group)
	c.spent += s.UserTime() + s.SystemTime()
}

// sofar is the time used until now by the tools, none of which may be ending,
// and by the calling thread, which must be that of the samples.
func (c *cost) sofar() (time.Duration, error) {
	own, err := threadTime()
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	groups, err := groupTime(c.running)
	return c.spent + groups + own, err
}

// all is the time that the tools used, all of which have ended.
func (c *cost) all() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spent
}

// threadTime is the processor time of the calling thread.
func threadTime() (time.Duration, error) {
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &own); err != nil {
		return 0, err
	}
	return time.Duration(own.Utime.Nano() + own.Stime.Nano()), nil
}

// groupTime is the processor time of all processes of some groups. The tools
// have one thread each.
func groupTime(groups map[int]bool) (time.Duration, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(data), ") ")
		f := strings.Fields(rest) // state, parent, group
		if len(f) < 3 {
			continue
		}
		if group, err := strconv.Atoi(f[2]); err != nil || !groups[group] {
			continue
		}
		used, err := schedTime(filepath.Join(filepath.Dir(path), "schedstat"))
		if err != nil {
			return 0, err
		}
		sum += used
	}
	return sum, nil
}

// schedTime is the first figure of a schedstat file; 0 of a process that has ended.
func schedTime(path string) (time.Duration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if _, gone := os.Stat(filepath.Dir(path)); gone != nil {
			return 0, nil
		}
		return 0, err
	}
	used, _, _ := strings.Cut(string(data), " ")
	ns, err := strconv.ParseInt(used, 10, 64)
	return time.Duration(ns), err
}
