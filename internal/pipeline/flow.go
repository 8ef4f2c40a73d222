package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"krig/bench"
	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/result"
	"krig/internal/rundir"
	"krig/provision"
)

// flow is one run in progress. It is used by one goroutine.
type flow struct {
	run   *rundir.Run // results go here
	owner *rundir.Run // the rig belongs to this run: run itself, or the one whose rig is reused
	plan  *experiment.Plan
	exp   *experiment.Experiment
	o     Options
	clock *stopwatch
	fleet *remote.Fleet
	rig   *rig // what stands; nil when nothing does

	done     int  // visits measured
	measured bool // at least one result is on disk
	states   map[string]int
}

// rig is one state of a rig, as far as it has been made.
type rig struct {
	Standing
	session *bench.Session
}

// newFlow wires progress and, with --reuse, takes over the rig that stands.
func newFlow(run *rundir.Run, plan *experiment.Plan, exp *experiment.Experiment, o Options, listen func(rundir.Event)) (*flow, error) {
	fl := &flow{run: run, owner: run, plan: plan, exp: exp, o: o, clock: newStopwatch(), states: map[string]int{}}
	run.Listen(fl.progress(listen))
	if o.Reuse != "" {
		if err := fl.adopt(o.Reuse); err != nil {
			return nil, err
		}
	}
	fl.fleet = remote.NewFleet(fl.owner.Dir)
	if fl.rig != nil {
		fl.fleet.Add(fl.rig.Hosts...)
	}
	return fl, nil
}

// progress adds how far the run is to every event.
func (fl *flow) progress(listen func(rundir.Event)) func(rundir.Event) {
	return func(e rundir.Event) {
		e.CellsDone, e.CellsTotal = fl.done, len(fl.plan.Visits)
		if listen != nil {
			listen(e)
		}
	}
}

// visit measures the visits in order. A cluster that cannot be had costs its
// own visit; what else fails ends the run.
func (fl *flow) visit(ctx context.Context, visits []experiment.Visit) error {
	for _, v := range visits {
		cell := fl.plan.Cells[v.Cell]
		if ctx.Err() != nil {
			return fmt.Errorf("before %s, repeat %d: %w", cell.ID, v.Repeat, context.Cause(ctx))
		}
		fl.say("bench", "%s, repeat %d of %d", cell.ID, v.Repeat, fl.exp.Repeat)
		if err := infra.Renew(ctx, fl.owner, fl.expiry()); err != nil {
			return fmt.Errorf("before %s, repeat %d: putting the rig's expiry off: %w", cell.ID, v.Repeat, err)
		}
		err := fl.to(ctx, cell)
		var lost *clusterError
		if errors.As(err, &lost) && ctx.Err() == nil {
			err = fl.failed(ctx, cell, v.Repeat, lost)
		} else if err == nil {
			err = fl.measure(ctx, cell, v.Repeat)
		}
		if err != nil {
			return err
		}
		fl.done++
	}
	return nil
}

// measure runs one repeat, and again, on a mended cluster, while it is not
// valid and retries are left.
func (fl *flow) measure(ctx context.Context, cell *experiment.Cell, repeat int) error {
	for attempt := 1; ; attempt++ {
		begun := time.Now()
		res, err := fl.rig.session.Run(ctx, bench.Ask{Cell: cell, Cluster: fl.rig.Cluster, ClusterNo: fl.rig.M, Repeat: repeat, Attempt: attempt})
		fl.clock.add("around", max(0, time.Since(begun).Seconds()-loadTime(cell).Seconds()))
		if err != nil {
			return fmt.Errorf("measuring %s, repeat %d: %w", cell.ID, repeat, err)
		}
		fl.measured = true
		if res.Status == result.Valid {
			return nil
		}
		fl.say("bench", "%s, repeat %d is %s: %s", cell.ID, repeat, res.Status, res.Reason)
		if err := fl.mend(ctx, cell); err != nil {
			return fmt.Errorf("after %s, repeat %d, was %s (%s): %w", cell.ID, repeat, res.Status, res.Reason, err)
		}
		if attempt > fl.exp.Retries {
			return nil
		}
	}
}

// failed records a repeat whose cluster could not be had, and clears the way
// for the next visit.
func (fl *flow) failed(ctx context.Context, cell *experiment.Cell, repeat int, cause error) error {
	now := time.Now().UTC()
	res := result.Repeat{
		Schema: result.Schema, Cell: cell.ID, Repeat: repeat, Attempt: 1, Rig: cell.RigName,
		RigState: fl.rig.N, Cluster: fl.rig.M, Status: result.Failed, Reason: cause.Error(),
		Started: now, Ended: now, Measures: result.Measures{}, Hosts: map[string]result.HostResult{},
	}
	fl.measured = true
	fl.say("cluster", "%s, repeat %d failed: %v", cell.ID, repeat, cause)
	if err := fl.run.WriteJSON(res, "cells", cell.ID, fmt.Sprint(repeat), "result.json"); err != nil {
		return err
	}
	if err := fl.clear(ctx); err != nil {
		fl.say("cluster", "the rig is made anew for the next repeat: %v", err)
		return fl.remove(ctx)
	}
	return nil
}

// mend makes hosts, agents and cluster whole after a repeat that went wrong.
// Where no cluster can be had on the rig, both are made anew.
func (fl *flow) mend(ctx context.Context, cell *experiment.Cell) error {
	err := fl.mendCluster(ctx, cell)
	var lost *clusterError
	if !errors.As(err, &lost) || ctx.Err() != nil {
		return err
	}
	fl.say("cluster", "the rig is made anew: %v", lost)
	if err := fl.remove(ctx); err != nil {
		return err
	}
	return fl.to(ctx, cell)
}

func (fl *flow) mendCluster(ctx context.Context, cell *experiment.Cell) error {
	if err := fl.hosts(ctx, cell); err != nil {
		return err
	}
	cl, err := provision.Mend(ctx, fl.owner, fl.fleet, fl.rig.Hosts, fl.rig.Prepared, cell, fl.rig.Cluster)
	if err != nil {
		fl.say("cluster", "the cluster could not be mended (%v): starting a new one", err)
		return fl.cluster(ctx, cell)
	}
	fl.rig.Cluster = cl
	return fl.stand()
}

// say reports a line.
func (fl *flow) say(stage, format string, args ...any) {
	fl.run.Report(rundir.Event{Stage: stage, Message: fmt.Sprintf(format, args...)})
}

// want is the state of the rig that a cell needs.
func (fl *flow) want(cell *experiment.Cell) infra.Want {
	return infra.Want{Cell: cell, Expiry: fl.expiry(), Kept: fl.o.Keep || fl.o.Reuse != ""}
}

// expiry is twice the estimate from now, an hour at least.
func (fl *flow) expiry() time.Time {
	return time.Now().Add(max(time.Hour, 2*EstimateOf(fl.plan).Total))
}
