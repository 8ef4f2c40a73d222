package infra

import (
	"context"
	"errors"
	"fmt"
	"time"

	"krig/infra/lab"
	"krig/internal/rundir"
)

// settle is how long an intent with nothing to show is looked for again: a
// child of a dead krig may not have been written down yet, and may not have
// made yet what it was started for.
const settle = 2 * time.Second

// Destroy ends the run's children, removes everything of the run that its
// ledger or its labels name, and lists again. What is left is in the error, a
// *[LeftError]. It may be called again, and after kill -9 at any instant.
func Destroy(ctx context.Context, run *rundir.Run) error {
	if err := endChildren(ctx, run); err != nil {
		return err
	}
	if err := await(ctx, run); err != nil {
		return err
	}
	label := Label{Run: run.Short, Scope: scope()}
	const rounds = 3 // what was being made while the first looked is found by the next
	var cause error
	for range rounds {
		left, err := Find(ctx, label)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			return closeEntries(run)
		}
		if cause = Remove(ctx, left); ctx.Err() != nil {
			break
		}
	}
	return last(ctx, run, label, cause)
}

// last lists again, also when ctx has ended: what still stands must be named.
func last(ctx context.Context, run *rundir.Run, label Label, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	left, err := Find(ctx, label)
	if err != nil {
		return errors.Join(err, cause)
	}
	if len(left) == 0 {
		return closeEntries(run)
	}
	return &LeftError{Run: run.Short, Left: left, Cause: cause}
}

// endChildren ends the processes that the ledger knows, since a dead krig's go on.
func endChildren(ctx context.Context, run *rundir.Run) error {
	standing, err := run.Ledger.Standing()
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range standing {
		if e.Kind != rundir.Child || e.Scope != "" {
			continue
		}
		err := run.Ledger.Undo(e, func() error { return lab.EndChild(ctx, e.Ref) })
		if err != nil {
			errs = append(errs, fmt.Errorf("ending %s: %w", e.Ref, err))
		}
	}
	return errors.Join(errs...)
}

// await gives an intent that has nothing to show yet the time to show it.
func await(ctx context.Context, run *rundir.Run) error {
	deadline := time.Now().Add(settle)
	for {
		waiting, err := unseen(ctx, run)
		if err != nil || !waiting || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// unseen tells whether the ledger announces a thing that is not there.
func unseen(ctx context.Context, run *rundir.Run) (bool, error) {
	standing, err := run.Ledger.Standing()
	if err != nil {
		return false, err
	}
	var intents []rundir.Entry
	for _, e := range standing {
		if e.State == rundir.Intent && lab.Makes(e.Kind) {
			intents = append(intents, e)
		}
	}
	if len(intents) == 0 {
		return false, nil
	}
	found, err := Find(ctx, Label{Run: run.Short, Scope: scope()})
	there := map[string]bool{}
	for _, f := range found {
		there[f.Kind+" "+f.Ref] = true
	}
	for _, e := range intents {
		if !there[e.Kind+" "+e.Ref] {
			return true, err
		}
	}
	return false, err
}

// closeEntries marks as undone what has been seen to be gone: the lab's own
// things, and whatever stood on its hosts. A rule is set back once more, as no
// label finds the one that outlived its device.
func closeEntries(run *rundir.Run) error {
	standing, err := run.Ledger.Standing()
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range standing {
		if lab.Makes(e.Kind) || e.Scope != "" {
			errs = append(errs, run.Ledger.Undo(e, func() error { return lab.Closed(e.Kind, e.Ref) }))
		}
	}
	return errors.Join(append(errs, lab.Forget(run))...)
}
