package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
)

// identity is what must be the same for a run to be resumed: identity.json.
type identity struct {
	Source   string            `json:"source"`   // the experiment's own path
	Files    map[string]string `json:"files"`    // SHA-256 of the experiment and of each file and directory it names, by path
	Programs map[string]string `json:"programs"` // SHA-256 of krig and its agents, by file name
	Set      []string          `json:"set"`      // path=value given at the command line
	Krig     string            `json:"krig"`     // krig's own version
}

// identify takes the identity of an experiment and of the programs at hand.
func identify(f *experiment.File, o Options) (identity, error) {
	source, err := filepath.Abs(f.Path)
	if err != nil {
		return identity{}, err
	}
	id := identity{Source: source, Files: map[string]string{}, Programs: map[string]string{}, Set: o.Set, Krig: o.Version}
	for _, path := range append([]string{source}, f.Inputs()...) {
		if id.Files[path], err = rundir.FileSum(path); err != nil {
			return id, err
		}
	}
	for _, dir := range f.Directories() {
		if id.Files[dir], err = rundir.TreeSum(dir); err != nil {
			return id, err
		}
	}
	for _, path := range programs() {
		if id.Programs[filepath.Base(path)], err = rundir.FileSum(path); err != nil {
			return id, err
		}
	}
	return id, nil
}

// programs are the files of krig and of the agents beside it.
func programs() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	agents, _ := filepath.Glob(filepath.Join(filepath.Dir(self), "krig-agent-*")) // a constant, well-formed pattern
	return append([]string{self}, agents...)
}

// reload reads a run's own experiment and plan back and refuses when the
// experiment or the programs are not those that it began with.
func reload(run *rundir.Run) (*experiment.File, *experiment.Plan, error) {
	var then identity
	err := run.ReadJSON(&then, "identity.json")
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, &Refused{[]error{fmt.Errorf("run %s never began to measure: start a new one with krig run", run.ID)}}
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := experiment.Load(then.Source, then.Set...)
	if err != nil {
		return nil, nil, &Refused{[]error{fmt.Errorf("the experiment of run %s can no longer be read: %w", run.ID, err)}}
	}
	now, err := identify(f, Options{Set: then.Set, Version: then.Krig})
	if err != nil {
		return nil, nil, err
	}
	changed := append(differences("", then.Files, now.Files), differences("program ", then.Programs, now.Programs)...)
	if len(changed) > 0 {
		return nil, nil, &Refused{[]error{fmt.Errorf("run %s cannot be resumed, its results would not be of one kind: %s; start a new run with krig run %s",
			run.ID, strings.Join(changed, "; "), then.Source)}}
	}
	var plan experiment.Plan
	if err := run.ReadJSON(&plan, "plan.json"); err != nil {
		return nil, nil, err
	}
	return f, &plan, nil
}

// differences names what changed between two sets of digests.
func differences(kind string, then, now map[string]string) []string {
	var out []string
	for path, sum := range then {
		switch have, ok := now[path]; {
		case !ok:
			out = append(out, fmt.Sprintf("%s%s is gone", kind, path))
		case have != sum:
			out = append(out, fmt.Sprintf("%s%s changed", kind, path))
		}
	}
	for path := range now {
		if _, ok := then[path]; !ok {
			out = append(out, fmt.Sprintf("%s%s is new", kind, path))
		}
	}
	slices.Sort(out)
	return out
}

// missing are the visits without a result on disk, in the plan's order.
func missing(run *rundir.Run, plan *experiment.Plan) ([]experiment.Visit, error) {
	var out []experiment.Visit
	for _, v := range plan.Visits {
		var r result.Repeat
		err := run.ReadJSON(&r, "cells", plan.Cells[v.Cell].ID, fmt.Sprint(v.Repeat), "result.json")
		switch {
		case errors.Is(err, os.ErrNotExist):
			out = append(out, v)
		case err != nil:
			return nil, err
		}
	}
	return out, nil
}
