// Package reports turns a run directory into an answer: the last stage. It
// reads result.json and series.json of every repeat, and the values of the
// other stages, and contacts nothing.
package reports

import (
	"bytes"
	"fmt"
	"io"

	"krig/internal/result"
	"krig/internal/rundir"
)

// Write gathers all repeats, computes summaries, and writes result.json,
// hosts.json, cluster.json, environment.json and report.html into the run
// directory. Repeats that are missing are named in the result; a run without
// any valid repeat is written all the same.
func Write(run *rundir.Run) (*result.Run, error) {
	plan, err := readPlan(run)
	if err != nil {
		return nil, err
	}
	r, err := gather(run, plan)
	if err != nil {
		return nil, err
	}
	a, err := analyse(run, r)
	if err != nil {
		return nil, err
	}
	a.summariseCells()
	r.Answer = a.answer()
	r.Warnings = a.warnings()
	var page bytes.Buffer
	if err := a.html(&page); err != nil {
		return nil, fmt.Errorf("drawing the page: %w", err)
	}
	return r, a.save(page.Bytes())
}

// save writes the files, the values before the page that is made of them.
func (a *analysis) save(page []byte) error {
	for _, f := range []struct {
		name  string
		value any
	}{
		{"hosts.json", a.hosts()},
		{"cluster.json", a.clusters()},
		{"environment.json", a.environment()},
		{"result.json", a.result},
	} {
		if err := a.run.WriteJSON(f.value, f.name); err != nil {
			return err
		}
	}
	return a.run.WriteFile(page, "report.html")
}

// Text writes the answer for a terminal: the sentences, and tables aligned by
// spaces, each figure with its unit.
func Text(w io.Writer, run *rundir.Run, r *result.Run) error {
	a, err := analyse(run, r)
	if err != nil {
		return err
	}
	return a.text(w)
}

// HTML writes the self-contained page.
func HTML(w io.Writer, run *rundir.Run, r *result.Run) error {
	a, err := analyse(run, r)
	if err != nil {
		return err
	}
	return a.html(w)
}
