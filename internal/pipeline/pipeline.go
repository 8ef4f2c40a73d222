// Package pipeline puts the four stages in order: it walks a plan's visits,
// makes only the difference between two states, and undoes everything at the
// end, whatever failed. It is the one package that knows all stages.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
	"krig/provision"
	"krig/reports"
)

// Options of a run.
type Options struct {
	RunsDir string   // where run directories live
	Keep    bool     // leave the rig standing at the end
	Reuse   string   // run directory whose standing rig is used instead of a new one
	Set     []string // path=value, applied to the experiment
	Version string   // krig's own
}

// Outcome is how a run ended. It is there, as far as things went, beside an error too.
type Outcome struct {
	Run         *rundir.Run
	Result      *result.Run // nil when nothing was measured
	Failed      []string    // cells without one valid repeat
	Leftovers   []string    // what teardown could not remove, each with the command that tries again
	Interrupted bool
}

// Refused says that nothing was touched: the experiment or this machine does
// not allow the run.
type Refused struct{ Reasons []error }

func (r *Refused) Error() string { return errors.Join(r.Reasons...).Error() }

// Unwrap gives every reason.
func (r *Refused) Unwrap() []error { return r.Reasons }

// Run does the whole flow for an experiment file: stand up, measure, report,
// take down. listen gets every line of progress.
func Run(ctx context.Context, file string, o Options, listen func(rundir.Event)) (Outcome, error) {
	fl, err := begin(ctx, file, o, listen)
	if err != nil {
		return Outcome{}, err
	}
	return fl.finish(ctx, fl.plan.Visits, o.Keep || o.Reuse != "")
}

// Up makes the first cell's rig and cluster and leaves them standing.
func Up(ctx context.Context, file string, o Options, listen func(rundir.Event)) (Outcome, error) {
	o.Keep = true
	fl, err := begin(ctx, file, o, listen)
	if err != nil {
		return Outcome{}, err
	}
	err = fl.to(ctx, fl.plan.Cells[fl.plan.Visits[0].Cell])
	out := Outcome{Run: fl.run, Interrupted: interrupted(ctx)}
	if err != nil {
		return out, errors.Join(err, fl.teardown(ctx, &out))
	}
	return out, fl.leave()
}

// Resume continues a run at its first missing repeat. What still stands of it
// is removed first. It refuses when the experiment or the programs changed.
func Resume(ctx context.Context, dir string, o Options, listen func(rundir.Event)) (Outcome, error) {
	run, err := rundir.Open(dir)
	if err != nil {
		return Outcome{}, err
	}
	if err := run.Lock(); err != nil {
		return Outcome{}, &Refused{[]error{err}}
	}
	f, plan, err := reload(run)
	if err != nil {
		return Outcome{Run: run}, errors.Join(err, run.Close())
	}
	fl, err := newFlow(run, plan, f.Experiment, o, listen)
	if err != nil {
		return Outcome{Run: run}, errors.Join(err, run.Close())
	}
	if err := clean(ctx, run); err != nil {
		return Outcome{Run: run}, errors.Join(fmt.Errorf("removing what the interrupted run left: %w", err), run.Close())
	}
	visits, err := missing(run, plan)
	if err != nil {
		return Outcome{Run: run}, errors.Join(err, run.Close())
	}
	fl.done = len(plan.Visits) - len(visits)
	fl.measured = fl.done > 0
	return fl.finish(ctx, visits, o.Keep)
}

// begin checks the experiment and this machine, makes the run directory, and
// writes what was asked into it. When it fails, nothing of the world is touched.
func begin(ctx context.Context, file string, o Options, listen func(rundir.Event)) (*flow, error) {
	f, plan, err := Check(file, o.Set...)
	if err != nil {
		return nil, err
	}
	if o.Reuse == "" {
		if err := able(ctx, f, plan, listen); err != nil {
			return nil, err
		}
	}
	run, err := rundir.Create(o.RunsDir, plan.Name, time.Now())
	if err != nil {
		return nil, &Refused{[]error{err}}
	}
	fl, err := newFlow(run, plan, f.Experiment, o, listen)
	if err == nil {
		err = record(run, f, plan, o)
	}
	if err == nil {
		if e := provision.Foresee(ctx, run, plan.Cells); e != nil && ctx.Err() == nil {
			err = &Refused{[]error{e}}
		} else {
			err = e
		}
	}
	if err != nil { // nothing of the world is touched yet: the directory would say nothing
		return nil, errors.Join(err, run.Close(), os.RemoveAll(run.Dir))
	}
	return fl, nil
}

// record writes experiment.yaml, effective.yaml, inputs/, plan.json and identity.json.
func record(run *rundir.Run, f *experiment.File, plan *experiment.Plan, o Options) error {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return err
	}
	effective, err := f.Effective()
	if err != nil {
		return err
	}
	id, err := identify(f, o)
	if err != nil {
		return err
	}
	for _, in := range f.Inputs() {
		data, err := os.ReadFile(in)
		if err != nil {
			return err
		}
		if err := run.WriteFile(data, "inputs", id.Files[in][:8]+"-"+filepath.Base(in)); err != nil {
			return err
		}
	}
	for _, dir := range f.Directories() {
		if err := run.CopyTree(dir); err != nil {
			return err
		}
	}
	return errors.Join(
		run.WriteFile(text, "experiment.yaml"),
		run.WriteFile(effective, "effective.yaml"),
		run.WriteJSON(plan, "plan.json"),
		run.WriteJSON(id, "identity.json"),
	)
}

// finish visits, reports and takes down; then it closes the run.
func (fl *flow) finish(ctx context.Context, visits []experiment.Visit, keep bool) (Outcome, error) {
	out := Outcome{Run: fl.run}
	limited, cancel := fl.limit(ctx)
	err := fl.visit(limited, visits)
	cancel()
	out.Interrupted = interrupted(ctx)
	if fl.measured {
		res, rerr := reports.Write(fl.run)
		out.Result, err = res, errors.Join(err, rerr)
		out.Failed = withoutValid(res)
	}
	if keep {
		return out, errors.Join(err, fl.leave())
	}
	return out, errors.Join(err, fl.teardown(ctx, &out))
}

// limit bounds the run by the experiment's own wall clock.
func (fl *flow) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if l := time.Duration(fl.exp.Limit); l > 0 {
		return context.WithTimeoutCause(ctx, l, fmt.Errorf("limit: the run's wall clock of %s is used up", l))
	}
	return ctx, func() {}
}

// interrupted tells a user's interruption from an end of the run's own limit.
func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// withoutValid names the cells that have not one valid repeat.
func withoutValid(r *result.Run) []string {
	var out []string
	if r == nil {
		return nil
	}
	for _, c := range r.Cells {
		valid := false
		for _, rep := range c.Repeats {
			valid = valid || rep.Status == result.Valid
		}
		if !valid {
			out = append(out, c.ID)
		}
	}
	return out
}
