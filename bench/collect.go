package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"krig/bench/hoststat"
	"krig/internal/agent"
	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/result"
	"krig/internal/rundir"
)

const (
	collectStart = 30 * time.Second // until a host's collectors run; scaled by its speed
	collectEnd   = 3 * time.Minute  // until they have closed and converted their files
	collectFetch = 5 * time.Minute  // until a host's files are home
	collectGone  = 20 * time.Second // the same, where the agent is gone and the host may be too
	collectMost  = 24 * time.Hour   // after which collectors end by themselves, were all else to fail
	jvmUsual     = 0.3              // s of a JVM's start on a machine that needs no longer limits
	fullFrom     = 0.9              // share of a data disk from which it counts as full
)

// collection is the collectors of one repeat, on every host of the rig and, in
// the lab, on this machine as the host "machine". What fails on one host is
// that host's loss alone.
type collection struct {
	s       *Session
	dir     string // cells/<cell>/<repeat>/hosts, below the run directory
	started time.Time
	ended   time.Time
	every   time.Duration
	hosts   []*watched
	full    chan string // why the run must stop: a disk is nearly full
}

// watched is the collectors of one host.
type watched struct {
	name  string
	host  rundir.Host // zero for this machine
	asked hoststat.Ask
	home  string // where its files come to, on this machine
	call  *agent.Call
	heard sync.WaitGroup

	mu    sync.Mutex
	holes []string        // what went wrong with its collectors
	files *hoststat.Files // nil until the agent has closed them
	ready chan struct{}
}

func (w *watched) lose(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.holes = append(w.holes, fmt.Sprintf(format, args...))
}

// collect starts the collectors and returns when they run; dir is cells/<cell>/<repeat>/hosts, below the run
// directory. An error means that ctx ended. The caller stops the collection.
func (s *Session) collect(ctx context.Context, a Ask, dir string) (*collection, error) {
	c := &collection{s: s, dir: dir, started: time.Now(), every: time.Duration(a.Cell.Collect.Interval), full: make(chan string, 1)}
	for _, h := range s.rig.Hosts {
		c.hosts = append(c.hosts, s.watch(a, h, dir))
	}
	if s.lab() {
		c.hosts = append(c.hosts, s.watch(a, rundir.Host{Name: machine}, dir))
	}
	var wg sync.WaitGroup
	for _, w := range c.hosts {
		wg.Go(func() { c.start(ctx, w) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		c.stop(context.WithoutCancel(ctx))
		return nil, context.Cause(ctx)
	}
	return c, nil
}

// watch says what is to be collected on a host.
func (s *Session) watch(a Ask, h rundir.Host, dir string) *watched {
	cell, prepared := a.Cell.Collect, s.prepared(h.Name)
	noDisk := h.Cgroup != "" && len(h.Disks) == 0 // the kernel would show the machine's disks as the host's
	w := &watched{name: h.Name, host: h, home: s.run.Path(dir, h.Name), ready: make(chan struct{})}
	w.asked = hoststat.Ask{
		Interval: max(1, int(time.Duration(cell.Interval)/time.Second)), Limit: int(collectMost / time.Second),
		Collectors: collectorsOf(cell, noDisk),
		Cgroup:     h.Cgroup != "", Path: h.Cgroup, Watch: prepared.DataDir,
		Dir: filepath.Join(prepared.Dir, "collect", fmt.Sprintf("%s-%s-%d-%d", s.run.Short, a.Cell.ID, a.Repeat, a.Attempt)),
	}
	if h.Name == machine {
		w.asked.Dir = w.home
	}
	for _, d := range h.Disks {
		w.asked.Disks = append(w.asked.Disks, d.Device)
	}
	w.asked.Real = h.Cgroup == "" && len(h.Disks) == 0
	if h.Name == machine {
		w.asked.Disks = s.sharedDisks()
	}
	return w
}

// collectorsOf are the names of the collectors that an experiment asks for, with
// or without those of disks.
func collectorsOf(c experiment.Collect, noDisk bool) []string {
	asked := map[string]bool{"sar": c.Sar, "iostat": c.Iostat, "pidstat": c.Pidstat}
	var out []string
	for _, known := range hoststat.Collectors() {
		if asked[known.Name] && !(known.Disks && noDisk) {
			out = append(out, known.Name)
		}
	}
	return out
}

// sharedDisks are the disks of all hosts that share this machine's kernel: here
// they have the same names.
func (s *Session) sharedDisks() []string {
	var out []string
	for _, h := range s.rig.Hosts {
		for _, d := range h.Disks {
			if h.SharesKernel() {
				out = append(out, d.Device)
			}
		}
	}
	return out
}

// start starts a host's collectors and waits until they run.
func (c *collection) start(ctx context.Context, w *watched) {
	l := c.s.agents[w.name]
	if l == nil {
		w.lose("there is no agent")
		return
	}
	// What is collected outlives ctx: it comes home also from a repeat that is cancelled.
	call, err := l.Call(context.WithoutCancel(ctx), "collect", w.asked)
	if err != nil {
		w.lose("starting the collectors: %v", err)
		return
	}
	w.call = call
	w.heard.Go(func() { c.listen(w) })
	limit := time.Duration(float64(collectStart) * c.s.slowness(w.name))
	select {
	case <-w.ready:
	case <-ctx.Done():
	case <-time.After(limit):
		w.lose("the collectors had not begun after %v", limit)
	}
}

// slowness is by how much a host is slower than one that needs no longer time
// limits; at least 1.
func (s *Session) slowness(host string) float64 {
	return max(1, s.prepared(host).Facts.JVMStart/jvmUsual)
}

// listen takes what a host's agent says until its end.
func (c *collection) listen(w *watched) {
	begun := sync.OnceFunc(func() { close(w.ready) })
	defer begun()
	for {
		m, err := w.call.Next(context.Background()) // ends with the agent at the latest
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.lose("%v", err)
			}
			return
		}
		if m.Kind == hoststat.Ready {
			begun()
			continue
		}
		if err := c.hear(w, m); err != nil {
			w.lose("the agent said what cannot be read: %v", err)
		}
	}
}

func (c *collection) hear(w *watched, m agent.Message) error {
	switch m.Kind {
	case hoststat.Hole:
		var why string
		err := json.Unmarshal(m.Body, &why)
		w.lose("%s", why)
		return err
	case hoststat.Level:
		var o hoststat.Own
		err := json.Unmarshal(m.Body, &o)
		if o.Free != nil && o.Size != nil && float64(*o.Size-*o.Free) >= fullFrom*float64(*o.Size) {
			select {
			case c.full <- fmt.Sprintf("disk full: %s has %d of %d bytes left", w.name, *o.Free, *o.Size):
			default: // said already
			}
		}
		return err
	case hoststat.Filled:
		var files hoststat.Files
		err := json.Unmarshal(m.Body, &files)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.files = &files
		return err
	}
	return nil
}

// stop ends the collectors and brings their files home, also when some fail.
// When it returns nothing of them runs where the agent lives.
func (c *collection) stop(ctx context.Context) {
	c.ended = time.Now()
	var wg sync.WaitGroup
	for _, w := range c.hosts {
		wg.Go(func() {
			c.end(ctx, w)
			limit := collectFetch
			if !w.closed() {
				limit = collectGone
			}
			fetch, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %v", limit))
			defer cancel()
			if err := c.fetch(fetch, w); err != nil {
				w.lose("%v", err)
			}
		})
	}
	wg.Wait()
}

// end waits for the agent's last word.
func (c *collection) end(ctx context.Context, w *watched) {
	if w.call == nil {
		return
	}
	if err := w.call.Cancel(); err != nil {
		return // the agent is gone: listen has told
	}
	heard := make(chan struct{})
	go func() { w.heard.Wait(); close(heard) }()
	select {
	case <-heard:
	case <-ctx.Done():
	case <-time.After(collectEnd):
		w.lose("the collectors did not end within %v", collectEnd)
	}
}

// fetch brings a host's files home and removes them there.
func (c *collection) fetch(ctx context.Context, w *watched) error {
	if w.name == machine || w.call == nil {
		return nil // written at home, or never begun
	}
	conn, err := c.s.fleet.Conn(ctx, w.name)
	if err != nil {
		return fmt.Errorf("bringing files home: %w", err)
	}
	names, err := w.list(ctx, conn)
	if err != nil {
		return fmt.Errorf("bringing files home: %w", err)
	}
	if err := os.MkdirAll(w.home, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if err := conn.Get(ctx, filepath.Join(w.asked.Dir, name), filepath.Join(w.home, name)); err != nil {
			return fmt.Errorf("bringing files home: %w", err)
		}
	}
	if _, err := conn.Root(ctx, "rm", "-rf", "--", w.asked.Dir); err != nil {
		return fmt.Errorf("removing collected files: %w", err)
	}
	return nil
}

// closed tells whether the agent has closed and listed the files.
func (w *watched) closed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files != nil
}

// list are the names of a host's files: as the agent told, else what lies there.
func (w *watched) list(ctx context.Context, conn *remote.Conn) ([]string, error) {
	w.mu.Lock()
	files := w.files
	w.mu.Unlock()
	if files != nil {
		return files.Names, nil
	}
	collectors, err := hoststat.Asked(w.asked)
	if err != nil {
		return nil, err
	}
	for _, c := range collectors {
		for n := 1; n <= hoststat.Starts && c.Convert != nil; n++ {
			if err := w.convert(ctx, conn, c, n); err != nil {
				return nil, err
			}
		}
	}
	out, err := conn.Root(ctx, "ls", "-A", w.asked.Dir)
	return strings.Fields(out), err
}

// convert makes a collector's file readable in the place of an agent that died.
// One that cannot be made so comes home as it is.
func (w *watched) convert(ctx context.Context, conn *remote.Conn, c hoststat.Collector, n int) error {
	raw := filepath.Join(w.asked.Dir, c.File(n, c.Raw))
	const script = `in=$1 out=$2; shift 2; [ ! -s "$in" ] || { "$@" >"$out" 2>/dev/null && rm -f "$in"; } || true`
	argv := []string{"env", "LC_ALL=C", "TZ=UTC", "sh", "-c", script, "krig", raw, filepath.Join(w.asked.Dir, c.File(n, c.Ext))}
	_, err := conn.Root(ctx, append(argv, c.Convert(raw)...)...)
	return err
}

// read cuts what was collected by phase: each host's measures in the steady
// phase, every series, and warnings.
func (c *collection) read(phases []result.Phase) (map[string]result.HostResult, []result.Series, []string) {
	hosts := map[string]result.HostResult{}
	var series []result.Series
	var warnings []string
	steady, known := steadyPhase(phases)
	for _, w := range c.hosts {
		read := c.readHost(w)
		h := result.HostResult{Measures: result.Measures{}, Lost: strings.Join(read.lost, "; ")}
		read.measure(h.Measures, steady, known)
		w.setCost(h.Measures)
		for _, e := range read.series {
			if shown := e.Result(w.name); e.Of == "" || named(e, &shown) {
				series = append(series, shown)
			}
		}
		for _, text := range read.warnings {
			warnings = append(warnings, w.name+": "+text)
		}
		hosts[w.name] = h
	}
	c.shares(hosts)
	return hosts, series, warnings
}

// setCost sets what collecting itself took, over its whole time.
func (w *watched) setCost(into result.Measures) {
	const name = "collectors.cpu" // s of processor time a second
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.files == nil || w.files.Cost == nil {
		into.SetUnknown(name, result.Ratio, "the agent did not tell")
		return
	}
	into.Set(name, *w.files.Cost, result.Ratio)
}

func steadyPhase(phases []result.Phase) (result.Phase, bool) {
	i := slices.IndexFunc(phases, func(p result.Phase) bool { return p.Name == "steady" })
	if i < 0 {
		return result.Phase{}, false
	}
	return phases[i], true
}
