package reports

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
)

// rigState is everything that the earlier stages wrote of the n-th state of a rig.
type rigState struct {
	rig      string
	state    int
	hosts    []rundir.Host
	prepared rundir.Prepared
	limits   rundir.Limits
	clusters []clusterState
}

// clusterState is one clusters/<m>.json, with where it stood.
type clusterState struct {
	Rig      string `json:"rig"`
	RigState int    `json:"rig_state"`
	Number   int    `json:"cluster"`
	rundir.Cluster
}

// hostsState is one hosts.json, with where it stood.
type hostsState struct {
	Rig      string        `json:"rig"`
	RigState int           `json:"rig_state"`
	Hosts    []rundir.Host `json:"hosts"`
}

// readPlan reads what the run was to do.
func readPlan(run *rundir.Run) (*experiment.Plan, error) {
	plan := new(experiment.Plan)
	if err := run.ReadJSON(plan, "plan.json"); err != nil {
		return nil, fmt.Errorf("reading the plan: %w", err)
	}
	impliedAxis(plan, "rig", func(c *experiment.Cell) string { return c.RigName })
	impliedAxis(plan, "bench", func(c *experiment.Cell) string { return c.Bench.Name })
	return plan, nil
}

// impliedAxis makes an axis of what varies between the cells without standing
// in the matrix: several rigs, several benches.
func impliedAxis(plan *experiment.Plan, path string, value func(*experiment.Cell) string) {
	seen := map[string]bool{}
	for _, c := range plan.Cells {
		seen[value(c)] = true
		if slices.ContainsFunc(c.Axes, func(a experiment.Axis) bool { return a.Path == path }) {
			return
		}
	}
	if len(seen) < 2 {
		return
	}
	for _, c := range plan.Cells {
		c.Axes = append([]experiment.Axis{{Path: path, Value: value(c)}}, c.Axes...)
	}
}

// gather reads every repeat that the plan asks for and that is there.
func gather(run *rundir.Run, plan *experiment.Plan) (*result.Run, error) {
	out := &result.Run{
		Schema: result.Schema, Run: run.ID, Name: plan.Name, Krig: version(run),
		Seed: plan.Seed, Order: plan.Order, Warnings: []string{},
	}
	for i, cell := range plan.Cells {
		c := result.Cell{ID: cell.ID, Axes: map[string]string{}, Repeats: []result.Repeat{}}
		for _, a := range cell.Axes {
			c.Axes[a.Path] = a.Value
		}
		if err := earlier(run, &c); err != nil {
			return nil, err
		}
		for _, n := range asked(plan, i) {
			rep, err := readRepeat(run, cell.ID, strconv.Itoa(n))
			switch {
			case errors.Is(err, fs.ErrNotExist):
				c.Missing = append(c.Missing, n)
			case err != nil:
				return nil, err
			default:
				c.Repeats = append(c.Repeats, *rep)
				spanning(out, rep)
			}
		}
		out.Cells = append(out.Cells, c)
	}
	return out, nil
}

// asked lists the repeats of a cell that the plan visits, in ascending order.
func asked(plan *experiment.Plan, cell int) []int {
	var repeats []int
	for _, v := range plan.Visits {
		if v.Cell == cell {
			repeats = append(repeats, v.Repeat)
		}
	}
	slices.Sort(repeats)
	return slices.Compact(repeats)
}

// earlier adds the attempts that were made again: cells/<cell>/<repeat>.<k>.
// One that never came to a result has nothing to show.
func earlier(run *rundir.Run, c *result.Cell) error {
	names, err := children(run, "cells", c.ID)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, _, aside := strings.Cut(name, "."); !aside || strings.HasPrefix(name, ".") {
			continue
		}
		rep, err := readRepeat(run, c.ID, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		c.Earlier = append(c.Earlier, *rep)
	}
	slices.SortStableFunc(c.Earlier, func(x, y result.Repeat) int {
		return cmp.Or(cmp.Compare(x.Repeat, y.Repeat), cmp.Compare(x.Attempt, y.Attempt))
	})
	return nil
}

// readRepeat reads the repeat in a directory of a cell.
func readRepeat(run *rundir.Run, cell, dir string) (*result.Repeat, error) {
	rep := new(result.Repeat)
	if err := run.ReadJSON(rep, "cells", cell, dir, "result.json"); err != nil {
		return nil, fmt.Errorf("reading repeat %s of cell %s: %w", dir, cell, err)
	}
	return rep, nil
}

// An attempt is a repeat, or an earlier try of one, and its directory.
type attempt struct {
	*result.Repeat
	dir     string // below cells/<cell>
	earlier bool
}

// attempts are the repeats of a cell, each after its earlier attempts.
func attempts(c *result.Cell) []attempt {
	var out []attempt
	tries := map[int]int{}
	for i := range c.Earlier {
		rep := &c.Earlier[i]
		tries[rep.Repeat]++
		out = append(out, attempt{rep, fmt.Sprintf("%d.%d", rep.Repeat, tries[rep.Repeat]), true})
	}
	for i := range c.Repeats {
		out = append(out, attempt{&c.Repeats[i], strconv.Itoa(c.Repeats[i].Repeat), false})
	}
	slices.SortStableFunc(out, func(x, y attempt) int { return cmp.Compare(x.Repeat.Repeat, y.Repeat.Repeat) })
	return out
}

// name is how people call it: "repeat 2", "repeat 2, attempt 1".
func (t attempt) name() string {
	if t.earlier {
		return fmt.Sprintf("repeat %d, attempt %d,", t.Repeat.Repeat, t.Attempt)
	}
	return fmt.Sprintf("repeat %d", t.Repeat.Repeat)
}

// readSeries reads the series of an attempt; without the file there are none.
func readSeries(run *rundir.Run, t attempt) (*result.SeriesFile, error) {
	file := new(result.SeriesFile)
	err := run.ReadJSON(file, "cells", t.Cell, t.dir, "series.json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the series of %s of cell %s: %w", t.dir, t.Cell, err)
	}
	return file, nil
}

// spanning widens the run's time to hold the repeat's.
func spanning(out *result.Run, rep *result.Repeat) {
	if out.Started.IsZero() || rep.Started.Before(out.Started) {
		out.Started = rep.Started
	}
	if rep.Ended.After(out.Ended) {
		out.Ended = rep.Ended
	}
}

// readRigs reads the states of all rigs, in the order of their names and numbers.
func readRigs(run *rundir.Run) ([]rigState, error) {
	names, err := children(run, "rigs")
	if err != nil {
		return nil, err
	}
	var out []rigState
	for _, name := range names {
		states, err := children(run, "rigs", name)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers(states) {
			s, err := readRigState(run, name, n)
			if err != nil {
				return nil, fmt.Errorf("reading state %d of rig %s: %w", n, name, err)
			}
			out = append(out, s)
		}
	}
	return out, nil
}

// readRigState reads what there is: a run that failed early has less.
func readRigState(run *rundir.Run, rig string, n int) (rigState, error) {
	s := rigState{rig: rig, state: n}
	dir := []string{"rigs", rig, strconv.Itoa(n)}
	for file, into := range map[string]any{"hosts.json": &s.hosts, "prepared.json": &s.prepared, "limits.json": &s.limits} {
		err := run.ReadJSON(into, append(slices.Clone(dir), file)...)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	files, err := children(run, append(slices.Clone(dir), "clusters")...)
	if err != nil {
		return s, err
	}
	for _, m := range numbers(files) {
		c := clusterState{Rig: rig, RigState: n, Number: m}
		err := run.ReadJSON(&c.Cluster, append(slices.Clone(dir), "clusters", strconv.Itoa(m)+".json")...)
		if err != nil {
			return s, err
		}
		s.clusters = append(s.clusters, c)
	}
	return s, nil
}

// children lists the names in a directory of the run; a missing one is empty.
func children(run *rundir.Run, elem ...string) ([]string, error) {
	entries, err := os.ReadDir(run.Path(elem...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// numbers are the names that are whole numbers, with or without .json, in
// numeric order. Others (a file half written by a krig that died) are not states.
func numbers(names []string) []int {
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(trimJSON(name)); err == nil {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, cmp.Compare[int])
	return out
}

func trimJSON(name string) string {
	const suffix = ".json"
	if len(name) > len(suffix) && name[len(name)-len(suffix):] == suffix {
		return name[:len(name)-len(suffix)]
	}
	return name
}

// version is that of the krig that measured, as it wrote it down at the start.
func version(run *rundir.Run) string {
	var id struct {
		Krig string `json:"krig"`
	}
	if err := run.ReadJSON(&id, "identity.json"); err != nil || id.Krig == "" {
		return "unknown"
	}
	return id.Krig
}
