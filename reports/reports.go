// Package reports turns a run directory into an answer: the last stage. It
// reads result.json and series.json of every repeat, and the values of the
// other stages, and contacts nothing.
package reports

import (
	"io"

	"krig/internal/result"
	"krig/internal/rundir"
)

// Write gathers all repeats, computes summaries, and writes result.json,
// hosts.json, cluster.json, environment.json and report.html into the run directory.
func Write(run *rundir.Run) (*result.Run, error) { panic("being built") }

// Text writes the answer for a terminal: a sentence and a table.
func Text(w io.Writer, run *rundir.Run, r *result.Run) error { panic("being built") }

// CSV writes one line for each measure of each repeat.
func CSV(w io.Writer, r *result.Run) error { panic("being built") }

// HTML writes the self-contained page.
func HTML(w io.Writer, run *rundir.Run, r *result.Run) error { panic("being built") }
