package infra

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"krig/infra/stack"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// kindStack is the kind of a ledger entry for a stack, written before it is
// made; its Ref is engine/provider/rig. The things in it have no entries: their
// names are not known before they are there.
const kindStack = "stack"

// stacked makes one provider's hosts by one engine of stacks: there is a stack
// for each rig, in the run directory.
type stacked struct {
	engine   string
	open     stack.Open
	provider stack.Provider
}

func (s stacked) ref(rig string) string { return s.engine + "/" + s.provider.Name() + "/" + rig }

func (s stacked) Refuse(c *experiment.Cell) []experiment.Problem { return s.provider.Refuse(c) }

func (s stacked) Check(ctx context.Context, cells []*experiment.Cell) []Lack {
	return s.provider.Check(ctx, cells)
}

func (s stacked) Renew(ctx context.Context, run *rundir.Run, expiry time.Time) error {
	rigs, err := s.rigs(run)
	if err != nil || len(rigs) == 0 {
		return err
	}
	return s.provider.Renew(ctx, run, expiry)
}

func (s stacked) Apply(ctx context.Context, run *rundir.Run, w Want) ([]rundir.Host, error) {
	in, err := s.provider.Input(ctx, run, w.Cell, label(run, w))
	if err != nil {
		return nil, err
	}
	if err := noteOnce(run, kindStack, s.ref(w.Cell.RigName)); err != nil {
		return nil, err
	}
	st, err := s.open(run, w.Cell.RigName)
	if err != nil {
		return nil, err
	}
	limits := s.provider.Limits()
	actx, cancel := context.WithTimeoutCause(ctx, limits.Apply, fmt.Errorf("%s was not done after %s", s.engine, limits.Apply))
	out, err := st.Apply(actx, in)
	cancel()
	if err != nil {
		return nil, err
	}
	return s.provider.Hosts(ctx, run, w.Cell, out)
}

// Destroy destroys the run's stacks.
func (s stacked) Destroy(ctx context.Context, run *rundir.Run) error {
	return s.each(run, func(e rundir.Entry, st stack.Stack) error {
		ctx, cancel := context.WithTimeout(ctx, s.provider.Limits().Destroy)
		defer cancel()
		return st.Destroy(ctx)
	})
}

// Left is what the stacks still know of where no finder can be asked.
func (s stacked) Left(ctx context.Context, run *rundir.Run) ([]Leftover, error) {
	if finders()[s.provider.Name()] != nil {
		return nil, nil
	}
	var out []Leftover
	err := s.each(run, func(e rundir.Entry, st stack.Stack) error {
		known, err := st.List(ctx)
		for _, address := range known {
			out = append(out, Leftover{Place: rundir.Place{Provider: s.provider.Name()}, Kind: e.Ref, Ref: address, Label: Label{Run: run.Short}})
		}
		return err
	})
	return out, err
}

// Forget scrubs the stacks' records of secrets, and closes their entries.
func (s stacked) Forget(run *rundir.Run) error {
	return s.each(run, func(e rundir.Entry, st stack.Stack) error { return run.Ledger.Undo(e, st.Scrub) })
}

// each opens each of the run's stacks of this engine and provider.
func (s stacked) each(run *rundir.Run, do func(rundir.Entry, stack.Stack) error) error {
	mine, err := s.rigs(run)
	errs := []error{err}
	for _, e := range mine {
		st, err := s.open(run, strings.TrimPrefix(e.Ref, s.ref("")))
		if err == nil {
			err = do(e, st)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("stack %s: %w", e.Ref, err))
		}
	}
	return errors.Join(errs...)
}

// rigs are the entries of the run's stacks of this engine and provider.
func (s stacked) rigs(run *rundir.Run) ([]rundir.Entry, error) {
	all, err := noted(run, kindStack)
	var out []rundir.Entry
	for _, e := range all {
		if strings.HasPrefix(e.Ref, s.ref("")) {
			out = append(out, e)
		}
	}
	return out, err
}
