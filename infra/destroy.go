package infra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"krig/infra/child"
	"krig/internal/rundir"
)

// settle is how long an intent with nothing to show is looked for again: a
// child of a dead krig may not have been written down yet, and may not have
// made yet what it was started for.
const settle = 2 * time.Second

// UndoLimit is how long taking a run down may take in all: what its hosts need
// to be given back, and what its stacks need to be destroyed.
func UndoLimit(run *rundir.Run) time.Duration {
	limit := 5 * time.Minute
	stacks, err := noted(run, kindStack)
	if err != nil {
		return limit // Destroy says so
	}
	for _, e := range stacks {
		for _, x := range engines() {
			if s, ok := x.(stacked); ok && strings.HasPrefix(e.Ref, s.ref("")) {
				limit += s.provider.Limits().Destroy
			}
		}
	}
	return limit
}

// Destroy ends the run's children, removes everything of the run that its
// engines, its ledger or its labels name, and lists again. What is left is in
// the error, a *[LeftError]; nothing that fails on the way keeps it from going
// on. It may be called again, and after kill -9 at any instant.
func Destroy(ctx context.Context, run *rundir.Run) error {
	first := errors.Join(
		endChildren(ctx, run),
		await(ctx, run),
		everyEngine(func(e engine) error { return e.Destroy(ctx, run) }),
	)
	const rounds = 3 // what was being made while the first looked is found by the next
	var cause error
	for range rounds {
		left, err := standing(ctx, run)
		if err == nil && len(left) == 0 {
			return finish(run, nil, first)
		}
		if cause = errors.Join(err, Remove(ctx, left)); ctx.Err() != nil {
			break
		}
	}
	return last(ctx, run, errors.Join(first, cause))
}

// last lists again, also when ctx has ended: what still stands must be named.
func last(ctx context.Context, run *rundir.Run, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	left, err := standing(ctx, run)
	if err != nil && len(left) == 0 {
		return errors.Join(err, cause)
	}
	return finish(run, left, errors.Join(err, cause))
}

// finish names what is left, children that live among it, or closes the ledger
// when nothing is.
func finish(run *rundir.Run, left []Leftover, cause error) error {
	started, err := noted(run, rundir.Child)
	for _, e := range started {
		if child.EntryAlive(e.Ref) {
			left = append(left, Leftover{Kind: e.Kind, Ref: e.Ref, Label: Label{Run: run.Short}})
		} else {
			err = errors.Join(err, run.Ledger.Undo(e, func() error { return nil }))
		}
	}
	if len(left) > 0 {
		return &LeftError{Run: run.Short, Left: left, Cause: errors.Join(err, cause)}
	}
	if err != nil {
		return errors.Join(err, cause)
	}
	if err := everyEngine(func(e engine) error { return e.Forget(run) }); err != nil {
		return err
	}
	places, err := noted(run, rundir.KindPlace)
	for _, e := range places {
		err = errors.Join(err, run.Ledger.Undo(e, func() error { return nil }))
	}
	return err
}

// endChildren ends the processes that the ledger knows, since a dead krig's go
// on: the oldest first, which may have started the others, until there are none
// but those that do not end.
func endChildren(ctx context.Context, run *rundir.Run) error {
	stay := map[string]error{}
	for {
		all, err := noted(run, rundir.Child)
		if err != nil {
			return err
		}
		next := slices.IndexFunc(all, func(e rundir.Entry) bool { return stay[e.ID] == nil })
		if next < 0 {
			return errors.Join(slices.Collect(maps.Values(stay))...)
		}
		e := all[next]
		if err := run.Ledger.Undo(e, func() error { return child.EndEntry(ctx, e.Ref) }); err != nil {
			stay[e.ID] = fmt.Errorf("ending %s: %w", e.Ref, err)
		}
	}
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
	all, err := run.Ledger.Standing()
	intents := slices.DeleteFunc(all, func(e rundir.Entry) bool { return e.State != rundir.Intent || e.Scope != "" || !findable(e.Kind) })
	if err != nil || len(intents) == 0 {
		return false, err
	}
	found, err := standing(ctx, run)
	there := map[string]bool{}
	for _, f := range found {
		there[f.Kind+" "+f.Ref] = true
	}
	return slices.ContainsFunc(intents, func(e rundir.Entry) bool { return !there[e.Kind+" "+e.Ref] }), err
}

// findable tells whether some finder finds what a kind of entry announces.
func findable(kind string) bool {
	for _, f := range finders() {
		if f.Makes(kind) {
			return true
		}
	}
	return false
}
