package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
)

const (
	homeLimit = 5 * time.Minute // collectors stopped and their files brought home
	busyLimit = 0.9             // of the lab machine's processors
	pressure  = 0.1             // of the time, waiting for a processor
)

// Ask is one repeat to be measured.
type Ask struct {
	Cell      *experiment.Cell
	Cluster   *rundir.Cluster
	ClusterNo int // m of clusters/<m>.json
	Repeat    int
	Attempt   int
}

// Prime puts the discarded load on a cluster that has just started.
func (s *Session) Prime(ctx context.Context, cl *rundir.Cluster, c *experiment.Cell) error {
	s.report("priming: a short load that is not counted")
	d, err := driverOf(c)
	if err != nil {
		return err
	}
	t, err := s.makeTopics(ctx, cl, c, d)
	if err != nil {
		return fmt.Errorf("priming: %w", err)
	}
	l, err := d.load(ctx, s, loadAsk{
		Ask: Ask{Cell: c, Cluster: cl}, topics: t.names, made: t, prime: true, progress: s.progress,
	})
	if err == nil && l.invalid != "" {
		err = errors.New(l.invalid)
	}
	after := context.WithoutCancel(ctx)
	if rerr := t.remove(after); err == nil {
		err = rerr
	}
	if err == nil {
		s.forget(ctx, cl, t)
	}
	if err = errors.Join(err, t.close()); err != nil {
		return fmt.Errorf("priming: %w", err)
	}
	return nil
}

func (s *Session) progress(bytesPerSecond float64) {
	s.run.Report(rundir.Event{Stage: "bench", Throughput: bytesPerSecond})
}

// Run measures one repeat: makes topics, starts collectors, loads, stops,
// brings everything home, deletes topics, settles, and writes
// cells/<cell>/<repeat>/result.json and series.json. What went wrong with the
// cluster or the load is in the result (invalid, failed) and not an error; an
// error means that nothing could be written or ctx ended.
func (s *Session) Run(ctx context.Context, a Ask) (*result.Repeat, error) {
	dir := filepath.Join("cells", a.Cell.ID, strconv.Itoa(a.Repeat))
	if err := keepEarlier(s.run.Path(dir)); err != nil {
		return nil, err
	}
	r := &repeat{s: s, ask: a, dir: dir, out: &result.Repeat{
		Schema: result.Schema, Cell: a.Cell.ID, Repeat: a.Repeat, Attempt: a.Attempt,
		Rig: s.rig.Name, RigState: s.rig.State, Cluster: a.ClusterNo,
		Marks: []string{}, Warnings: []string{}, Phases: []result.Phase{}, Load: []string{},
		Client:   result.Client{Producer: a.Cell.Bench.Producer, Consumer: a.Cell.Bench.Consumer},
		Measures: result.Measures{}, Hosts: map[string]result.HostResult{},
		Status: result.Valid, Started: time.Now().UTC(),
	}}
	err := r.measure(ctx)
	r.out.Ended = time.Now().UTC()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return r.out, r.write()
}

// keepEarlier moves what an earlier attempt left out of the way: to <repeat>.1, .2, ...
func keepEarlier(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.%d", dir, n)
		if _, err := os.Stat(aside); errors.Is(err, os.ErrNotExist) {
			if err := os.Rename(dir, aside); err != nil {
				return fmt.Errorf("keeping an earlier attempt: %w", err)
			}
			return nil
		}
	}
}

// repeat is one measurement in progress.
type repeat struct {
	s      *Session
	ask    Ask
	dir    string // below the run directory
	out    *result.Repeat
	series []result.Series
}

// measure does everything but writing. An error means that ctx ended or a
// driver could not write.
func (r *repeat) measure(ctx context.Context) error {
	s, a := r.s, r.ask
	if lost := s.lostAgents(); lost != "" {
		r.fail(result.Failed, lost)
		return nil
	}
	if err := s.clocks.measure(ctx, s); err != nil {
		r.fail(result.Failed, err.Error())
		return nil
	}
	d, err := driverOf(a.Cell)
	if err != nil {
		return err
	}
	t, err := s.makeTopics(ctx, a.Cluster, a.Cell, d)
	if err != nil {
		r.fail(result.Failed, err.Error())
		return nil
	}
	defer t.close()
	err = r.load(ctx, d, t)
	after := context.WithoutCancel(ctx)
	if rerr := t.remove(after); rerr != nil {
		s.residue = append(s.residue, t.names...)
		r.warn(rerr.Error())
	}
	if err == nil && ctx.Err() == nil {
		limit := settleLimit
		if r.out.Status != result.Valid {
			limit = settleShort
		}
		r.out.Settle = s.settle(ctx, a.Cluster, t, limit)
	}
	return err
}

// load runs collectors and driver, and takes in what both found.
func (r *repeat) load(ctx context.Context, d driver, t *topics) error {
	s := r.s
	coll, err := s.collect(ctx, r.ask, filepath.Join(r.dir, "hosts"))
	if err != nil {
		if ctx.Err() == nil {
			r.fail(result.Failed, fmt.Sprintf("starting collectors: %v", err))
		}
		return nil
	}
	loading, w := s.guard(ctx, r.ask, t, coll.full)
	l, err := d.load(loading, s, loadAsk{
		Ask: r.ask, topics: t.names, made: t, dir: filepath.Join(r.dir, "load"), progress: s.progress,
	})
	stopped := w.stop(loading)
	home, cancel := context.WithTimeout(context.WithoutCancel(ctx), homeLimit)
	defer cancel()
	coll.stop(home)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && stopped == "" {
		return err
	}
	_ = s.clocks.measure(home, s) // an agent that is gone was told of where it mattered
	if l != nil {
		r.take(l)
	}
	if stopped != "" {
		r.fail(result.Invalid, stopped)
	}
	hosts, series, warnings := coll.read(r.out.Phases)
	r.out.Hosts = hosts
	r.series = append(r.series, series...)
	r.warn(warnings...)
	r.judgeMachine()
	return nil
}

func (r *repeat) take(l *loaded) {
	if l.phases != nil {
		r.out.Phases = l.phases
	}
	if l.measures != nil {
		r.out.Measures = l.measures
	}
	r.series = append(r.series, l.series...)
	r.out.Marks = append(r.out.Marks, l.marks...)
	r.out.Load = append(r.out.Load, l.notes...)
	r.out.Commands, r.out.Client.NotApplied = l.commands, l.changed
	r.warn(l.warnings...)
	if l.invalid != "" {
		r.fail(result.Invalid, l.invalid)
	}
}

// fail records why the repeat is not valid. A cause found from outside the load
// comes before what the load felt of it.
func (r *repeat) fail(status result.Status, why string) {
	if r.out.Reason != "" && r.out.Reason != why {
		r.warn(r.out.Reason)
	}
	r.out.Status, r.out.Reason = status, why
	r.s.report("%s, repeat %d: %s", r.ask.Cell.ID, r.ask.Repeat, why)
}

func (r *repeat) warn(lines ...string) {
	for _, line := range lines {
		if !slices.Contains(r.out.Warnings, line) {
			r.out.Warnings = append(r.out.Warnings, line)
		}
	}
}

// judgeMachine marks a repeat that ran while the lab's one machine was at its limit.
func (r *repeat) judgeMachine() {
	m := r.out.Hosts[machine].Measures
	busy, _ := m.Get("cpu.busy")
	waiting, _ := m.Get("cpu.pressure")
	if busy > busyLimit || waiting > pressure {
		r.out.Marks = append(r.out.Marks, result.LimitedByLabMachine)
	}
}

// write stores series first: a repeat whose result.json is there is complete.
func (r *repeat) write() error {
	series := result.SeriesFile{Schema: result.Schema, Phases: r.out.Phases, Series: r.series}
	if series.Series == nil {
		series.Series = []result.Series{}
	}
	if err := r.s.run.WriteJSON(series, r.dir, "series.json"); err != nil {
		return err
	}
	return r.s.run.WriteJSON(r.out, r.dir, "result.json")
}
