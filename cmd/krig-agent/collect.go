package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"krig/bench/hoststat"
	"krig/internal/agent"
)

const (
	collectGrace = 5 * time.Second  // from SIGINT, at which files are closed, to SIGKILL
	collectFirst = 10 * time.Second // until a collector has made its file
	convertLimit = 2 * time.Minute  // to make one file readable
	saidMax      = 2 << 10          // of what a tool said on standard error
)

// collectEnv makes the tools write what can be read anywhere.
func collectEnv() []string {
	return append(os.Environ(), "LC_ALL=C", "TZ=UTC", "S_TIME_FORMAT=ISO")
}

// collect is the verb that watches this host until it is cancelled: the
// collectors asked for as children, and samples of our own. Everything lies in
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
	tools, err := hoststat.Asked(ask)
	if err != nil {
		return fmt.Errorf("collect: %w; build krig and krig-agent from one source", err)
	}
	c := &collectors{ask: ask, tools: tools, emit: s.Emit, cost: cost{running: map[int]bool{}}}
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
	tools   []hoststat.Collector
	cost    cost
	devices []string
	emit    func(kind string, body any) error
}

// A tool is one start of a collector: it writes a file of its own.
type tool struct {
	of   hoststat.Collector
	argv []string
	out  string // file that takes its standard output; "" is nowhere
	file string // file that shows that it has begun
}

// toolOf is a collector's n-th start.
func toolOf(c hoststat.Collector, ask hoststat.Ask, devices []string, n int) tool {
	file := filepath.Join(ask.Dir, c.File(n, c.Raw))
	t := tool{of: c, argv: c.Argv(ask, devices, file), file: file}
	if c.Stdout {
		t.out = file
	}
	return t
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
	for _, t := range c.tools {
		begun.Add(1)
		wg.Go(func() { c.keep(bounded, t, begun.Done) })
	}
	begun.Wait()
	files := hoststat.Files{Devices: c.devices}
	err = c.emit(hoststat.Ready, struct{}{})
	cost := func() *float64 { return nil }
	if err == nil {
		cost, err = c.sampleAtCost(bounded, own)
	}
	files.Expect = int(time.Since(started) / (time.Duration(c.ask.Interval) * time.Second))
	cancel()
	wg.Wait()
	files.Cost = cost()
	if err != nil || errors.Is(context.Cause(ctx), agent.ErrLease) {
		return err // nobody is there to read what was collected
	}
	return c.finish(files)
}

// hole tells krig what went wrong with a collector. Where krig is gone there is
// nobody to tell, and the lease's end ends everything.
func (c *collectors) hole(format string, args ...any) {
	_ = c.emit(hoststat.Hole, fmt.Sprintf(format, args...))
}

// sampleAtCost takes our own samples until ctx ends. What it returns tells,
// once the tools have ended, the processor time a second that all collecting
// took; nil when not known. (While a tool ends, its time is in neither place.)
func (c *collectors) sampleAtCost(ctx context.Context, own *sampler) (func() *float64, error) {
	runtime.LockOSThread() // its processor time is that of the samples
	defer runtime.UnlockOSThread()
	began := time.Now()
	before, unknown := c.cost.sofar()
	err := c.sample(ctx, own)
	samples, later := threadTime()
	length := time.Since(began).Seconds()
	return func() *float64 {
		if errors.Join(unknown, later) != nil || length < 1 {
			return nil
		}
		share := (c.cost.all() + samples - before).Seconds() / length
		return &share
	}, err
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
func (c *collectors) keep(ctx context.Context, of hoststat.Collector, begun func()) {
	once := sync.OnceFunc(begun)
	defer once()
	for n := 1; n <= hoststat.Starts; n++ {
		t := toolOf(of, c.ask, c.devices, n)
		end := c.once(ctx, t, once)
		if ctx.Err() != nil {
			return
		}
		again := "started again"
		if n == hoststat.Starts || errors.Is(end, exec.ErrNotFound) {
			again, n = "not started again", hoststat.Starts
		}
		c.hole("%s %s %v; %s", time.Now().UTC().Format(time.RFC3339), of.Name, end, again)
	}
}

// once runs a collector one time and says how it ended.
func (c *collectors) once(ctx context.Context, t tool, begun func()) error {
	stderr := filepath.Join(c.ask.Dir, strings.TrimSuffix(filepath.Base(t.file), filepath.Ext(t.file))+".stderr")
	child, err := startTool(t, stderr)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("is not installed (package %s): %w", t.of.Package, err)
		}
		return fmt.Errorf("could not be started: %w", err)
	}
	group := child.cmd.Process.Pid
	c.cost.began(group)
	defer func() { c.cost.ended(group, child.cmd.ProcessState) }()
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

// finish makes files readable, removes empty ones and says what lies there.
func (c *collectors) finish(files hoststat.Files) error {
	for _, t := range c.tools {
		for n := 1; n <= hoststat.Starts && t.Convert != nil; n++ {
			if err := convert(t, c.ask.Dir, n); err != nil {
				c.hole("%v", err) // the raw file comes home instead
			}
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

// convert makes the file of a collector's n-th start readable, on the host
// whose release of the tool wrote it: others may not read it. The raw file is
// removed when that went well. Without such a file nothing is done.
func convert(t hoststat.Collector, dir string, n int) error {
	raw := filepath.Join(dir, t.File(n, t.Raw))
	if _, err := os.Stat(raw); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), convertLimit)
	defer cancel()
	out, err := os.Create(filepath.Join(dir, t.File(n, t.Ext)))
	if err != nil {
		return err
	}
	defer out.Close()
	argv := t.Convert(raw)
	stderr, err := os.Create(filepath.Join(dir, t.File(n, "."+argv[0]+".stderr")))
	if err != nil {
		return err
	}
	defer stderr.Close()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = collectEnv()
	cmd.Stdout, cmd.Stderr = out, stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s of %s: %w%s", argv[0], filepath.Base(raw), err, said(stderr.Name()))
	}
	return os.Remove(raw)
}
