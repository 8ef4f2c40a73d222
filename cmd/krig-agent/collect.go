package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"krig/bench/hoststat"
	"krig/internal/agent"
)

const (
	collectStarts = 2                // how often a collector is started in all
	collectGrace  = 5 * time.Second  // from SIGINT, at which files are closed, to SIGKILL
	collectFirst  = 10 * time.Second // until sar has made its file
	convertLimit  = 2 * time.Minute  // sadf, for one file
	saidMax       = 2 << 10          // of what a tool said on standard error
)

// collectEnv makes the tools write what can be read anywhere.
func collectEnv() []string {
	return append(os.Environ(), "LC_ALL=C", "TZ=UTC", "S_TIME_FORMAT=ISO")
}

// collect is the verb that watches this host until it is cancelled: sar,
// iostat and pidstat as children, and samples of our own. Everything lies in
// hoststat.Ask.Dir; the caller takes it from there.
func collect(ctx context.Context, s *agent.Session) error {
	var ask hoststat.Ask
	if err := json.Unmarshal(s.Args, &ask); err != nil {
		return fmt.Errorf("collect: reading what is asked: %w", err)
	}
	if ask.Interval < 1 || ask.Limit < 1 || !filepath.IsAbs(ask.Dir) {
		return fmt.Errorf("collect: interval %d s, limit %d s, directory %q: each must be given", ask.Interval, ask.Limit, ask.Dir)
	}
	if err := os.MkdirAll(ask.Dir, 0o755); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	c := &collectors{ask: ask, emit: s.Emit}
	for _, path := range ask.Disks {
		c.devices = append(c.devices, kernelName(path))
	}
	if ask.Real {
		c.devices = append(c.devices, realDisks()...)
	}
	return c.run(ctx)
}

// kernelName is a device's name in /proc/diskstats, which may differ from a
// link to it such as /dev/disk/by-id/x.
func kernelName(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Base(path)
}

// realDisks are the disks that are no layer on top of others: those behind
// which there is a device.
func realDisks() []string {
	found, _ := filepath.Glob("/sys/block/*/device") // the pattern is right
	for i, path := range found {
		found[i] = filepath.Base(filepath.Dir(path))
	}
	return found
}

// collectors is one running collect verb.
type collectors struct {
	ask     hoststat.Ask
	devices []string
	emit    func(kind string, body any) error
}

// A tool is one collector: it writes a file of its own at each start.
type tool struct {
	name string
	argv []string
	out  string // file that takes its standard output; "" is nowhere
	file string // file that shows that it has begun
}

// tools are the collectors asked for, at their n-th start.
func tools(ask hoststat.Ask, devices []string, n int) []tool {
	suffix := ""
	if n > 1 {
		suffix = "." + strconv.Itoa(n)
	}
	path := func(name, ext string) string { return filepath.Join(ask.Dir, name+suffix+ext) }
	every := strconv.Itoa(ask.Interval)
	var out []tool
	if ask.Sar {
		file := path("sar", ".bin")
		out = append(out, tool{name: "sar", argv: []string{"sar", "-A", "-o", file, every}, file: file})
	}
	if ask.Iostat {
		file := path("iostat", ".json")
		argv := slices.Concat([]string{"iostat", "-o", "JSON", "-x", "-t"}, devices, []string{every})
		out = append(out, tool{name: "iostat", argv: argv, out: file, file: file})
	}
	if ask.Pidstat {
		file := path("pidstat", ".txt")
		out = append(out, tool{name: "pidstat", argv: []string{"pidstat", "-h", "-H", "-u", "-r", "-d", every}, out: file, file: file})
	}
	return out
}

// run collects until ctx or the time limit ends, then closes and lists the files.
func (c *collectors) run(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, time.Duration(c.ask.Limit)*time.Second)
	defer cancel()
	own, err := newSampler(c.ask)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	defer own.close()
	started := time.Now()
	var wg sync.WaitGroup
	var begun sync.WaitGroup
	for i, t := range tools(c.ask, c.devices, 1) {
		begun.Add(1)
		wg.Go(func() { c.keep(bounded, t, i, begun.Done) })
	}
	begun.Wait()
	err = c.emit(hoststat.Ready, struct{}{})
	if err == nil {
		err = c.sample(bounded, own)
	}
	ended := time.Now()
	cancel()
	wg.Wait()
	if err != nil || errors.Is(context.Cause(ctx), agent.ErrLease) {
		return err // nobody is there to read what was collected
	}
	return c.finish(ended.Sub(started))
}

// hole tells krig what went wrong with a collector. Where krig is gone there is
// nobody to tell, and the lease's end ends everything.
func (c *collectors) hole(format string, args ...any) {
	_ = c.emit(hoststat.Hole, fmt.Sprintf(format, args...))
}

// sample takes our own samples until ctx ends.
func (c *collectors) sample(ctx context.Context, own *sampler) error {
	tick := time.NewTicker(time.Duration(c.ask.Interval) * time.Second)
	defer tick.Stop()
	for {
		o, err := own.take()
		if err != nil {
			return fmt.Errorf("collect: %w", err)
		}
		if c.ask.Watch != "" {
			if err := c.emit(hoststat.Level, o); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// keep runs a collector until ctx ends; one that ends by itself is started
// once more. begun is called when it has begun, or cannot.
func (c *collectors) keep(ctx context.Context, first tool, at int, begun func()) {
	once := sync.OnceFunc(begun)
	defer once()
	for n := 1; n <= collectStarts; n++ {
		t := first
		if n > 1 {
			t = tools(c.ask, c.devices, n)[at]
		}
		end := c.once(ctx, t, once)
		if ctx.Err() != nil {
			return
		}
		again := "started again"
		if n == collectStarts || errors.Is(end, exec.ErrNotFound) {
			again, n = "not started again", collectStarts
		}
		c.hole("%s %s %v; %s", time.Now().UTC().Format(time.RFC3339), t.name, end, again)
	}
}

// once runs a collector one time and says how it ended.
func (c *collectors) once(ctx context.Context, t tool, begun func()) error {
	stderr := filepath.Join(c.ask.Dir, strings.TrimSuffix(filepath.Base(t.file), filepath.Ext(t.file))+".stderr")
	child, err := startTool(t, stderr)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("is not installed (package sysstat): %w", err)
		}
		return fmt.Errorf("could not be started: %w", err)
	}
	awaitFile(ctx, t.file, child.exited)
	begun()
	err = child.wait(ctx, syscall.SIGINT, collectGrace) // at SIGINT the tools close their files
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("ended: %w%s", err, said(stderr))
}

// awaitFile waits until a tool has made its file, has ended, or took too long.
func awaitFile(ctx context.Context, path string, ended <-chan struct{}) {
	limit := time.After(collectFirst)
	for {
		if info, err := os.Stat(path); err == nil && info.Size() >= 0 {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ended:
			return
		case <-limit:
			return
		case <-ctx.Done():
			return
		}
	}
}

// said is what a tool said on standard error, for a sentence.
func said(path string) string {
	data, err := os.ReadFile(path)
	text := strings.Join(strings.Fields(string(data[:min(len(data), saidMax)])), " ")
	if err != nil || text == "" {
		return ""
	}
	return ": " + text
}

// startTool starts a collector with its output in files.
func startTool(t tool, stderr string) (*child, error) {
	cmd := exec.Command(t.argv[0], t.argv[1:]...)
	cmd.Env = collectEnv()
	errFile, err := os.Create(stderr)
	if err != nil {
		return nil, err
	}
	defer errFile.Close()
	cmd.Stderr = errFile
	if t.out != "" {
		out, err := os.Create(t.out)
		if err != nil {
			return nil, err
		}
		defer out.Close()
		cmd.Stdout = out
	}
	return startChild(cmd)
}

// finish turns sar's files into JSON, removes empty files and says what lies there.
func (c *collectors) finish(took time.Duration) error {
	files := hoststat.Files{Devices: c.devices, Expect: int(took / (time.Duration(c.ask.Interval) * time.Second))}
	bins, err := filepath.Glob(filepath.Join(c.ask.Dir, "sar*.bin"))
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	for _, bin := range bins {
		if err := convert(bin); err != nil {
			c.hole("%v", err) // the binary file comes home instead
		}
	}
	entries, err := os.ReadDir(c.ask.Dir)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Size() == 0 {
			err = os.Remove(filepath.Join(c.ask.Dir, e.Name()))
		} else if err == nil && info.Mode().IsRegular() {
			files.Names = append(files.Names, e.Name())
		}
		if err != nil {
			return fmt.Errorf("collect: %w", err)
		}
	}
	return c.emit(hoststat.Filled, files)
}

// convert has sadf write a file of sar's as JSON, on the host whose release
// of sysstat wrote it: others may not read it. The binary file is removed when that
// went well.
func convert(bin string) error {
	ctx, cancel := context.WithTimeout(context.Background(), convertLimit)
	defer cancel()
	base := strings.TrimSuffix(bin, ".bin")
	out, err := os.Create(base + ".json")
	if err != nil {
		return err
	}
	defer out.Close()
	stderr, err := os.Create(base + ".sadf.stderr")
	if err != nil {
		return err
	}
	defer stderr.Close()
	cmd := exec.CommandContext(ctx, "sadf", "-j", bin, "--", "-A")
	cmd.Env = collectEnv()
	cmd.Stdout, cmd.Stderr = out, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("sadf -j %s: %w%s", filepath.Base(bin), err, said(stderr.Name()))
	}
	return os.Remove(bin)
}
