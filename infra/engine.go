package infra

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"krig/infra/module"
	"krig/infra/terraform"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// An engine creates the hosts of one provider.
type engine interface {
	// Refuse is what the engine cannot do for a cell. It contacts nothing.
	Refuse(c *experiment.Cell) []experiment.Problem
	// Check tells what this machine lacks for the cells, which are the
	// engine's own; without cells, for any run. It changes nothing.
	Check(ctx context.Context, cells []*experiment.Cell) []Lack
	// Apply converges up and down; see [Apply].
	Apply(ctx context.Context, run *rundir.Run, w Want) ([]rundir.Host, error)
	// Renew gives all that it made for the run a later expiry, if it made anything.
	Renew(ctx context.Context, run *rundir.Run, expiry time.Time) error
	// Destroy undoes what it made for the run, as far as the run directory
	// tells and a finder would not find it or would leave the engine's own
	// records wrong. The run's children have been ended.
	Destroy(ctx context.Context, run *rundir.Run) error
	// Left is what the engine's own records still know of that no finder finds.
	Left(ctx context.Context, run *rundir.Run) ([]Leftover, error)
	// Forget closes its entries in the ledger, and removes keys from the run
	// directory. It is called when no finder finds anything of the run.
	Forget(run *rundir.Run) error
}

// A finder asks a provider itself what carries a label, and removes it.
type finder interface {
	// Find lists what the label selects. It reads no run directory.
	Find(ctx context.Context, l Label) ([]Leftover, error)
	// Remove removes what Find found, in the order that it needs. What cannot
	// be removed does not keep the rest.
	Remove(ctx context.Context, found []Leftover) error
	// Makes tells whether Find finds what a kind of ledger entry announces.
	Makes(kind string) bool
}

// A pair is a provider and an engine that creates its hosts.
type pair struct{ provider, engine string }

// engines are all there are. A new one is a file, and a line here.
func engines() map[pair]engine {
	return map[pair]engine{
		{"lab", "direct"}:       labDirect{},
		{"lab", "terraform"}:    stacked{"terraform", terraform.Open, labStack{}},
		{"module", "terraform"}: stacked{"terraform", terraform.Open, module.Provider{}},
	}
}

// finders are those of all providers, by the provider's name.
func finders() map[string]finder {
	return map[string]finder{"lab": labFinder{}}
}

func pairOf(c *experiment.Cell) pair { return pair{c.Rig.Provider, c.Rig.Engine} }

// Apply converges up and down to what is wanted and returns the hosts in the
// order of the cell's placement. Hosts that already are as wanted are kept as
// they stand; a host whose specification changed is made again (its Host value
// then differs from the earlier one).
func Apply(ctx context.Context, run *rundir.Run, w Want) ([]rundir.Host, error) {
	p := pairOf(w.Cell)
	e := engines()[p]
	if e == nil {
		return nil, fmt.Errorf("making rig %s: provider %s has no engine %s", w.Cell.RigName, p.provider, p.engine)
	}
	if err := noteOnce(run, rundir.KindPlace, rundir.Place{Provider: p.provider}.String()); err != nil {
		return nil, err
	}
	return e.Apply(ctx, run, w)
}

// noteOnce writes an entry into the run's ledger unless it stands there.
func noteOnce(run *rundir.Run, kind, ref string) error {
	standing, err := run.Ledger.Standing()
	if err != nil || slices.ContainsFunc(standing, func(e rundir.Entry) bool { return e.Kind == kind && e.Ref == ref }) {
		return err
	}
	return run.Ledger.Do(rundir.Entry{Kind: kind, Ref: ref}, func() error { return nil })
}

// noted are the standing entries of one kind, oldest first.
func noted(run *rundir.Run, kind string) ([]rundir.Entry, error) {
	standing, err := run.Ledger.Standing()
	standing = slices.DeleteFunc(standing, func(e rundir.Entry) bool { return e.Kind != kind || e.Scope != "" })
	slices.Reverse(standing)
	return standing, err
}

// Refuse is what the providers and engines cannot do for a cell. It contacts nothing.
func Refuse(c *experiment.Cell) []experiment.Problem {
	p := pairOf(c)
	e := engines()[p]
	if e == nil {
		return []experiment.Problem{{Path: "rigs." + c.RigName + ".engine",
			Reason: "provider " + p.provider + " has no engine " + p.engine, Expected: strings.Join(enginesOf(p.provider), " or ")}}
	}
	return e.Refuse(c)
}

func enginesOf(provider string) []string {
	var out []string
	for p := range engines() {
		if p.provider == provider {
			out = append(out, p.engine)
		}
	}
	slices.Sort(out)
	return out
}

// Check tells what this machine cannot do for the cells, before anything is
// touched: no podman, no root, a throttle that its cgroups do not have. It
// changes nothing, and asks for the providers of the cells alone; without cells
// it answers for any lab run. The same answers serve krig doctor.
func Check(ctx context.Context, cells []*experiment.Cell) []Lack {
	if len(cells) == 0 {
		return labDirect{}.Check(ctx, nil)
	}
	of := map[pair][]*experiment.Cell{}
	var order []pair
	for _, c := range cells {
		p := pairOf(c)
		if of[p] == nil {
			order = append(order, p)
		}
		of[p] = append(of[p], c)
	}
	var out []Lack
	for _, p := range order {
		if e := engines()[p]; e != nil { // else Refuse has said so
			out = append(out, e.Check(ctx, of[p])...)
		}
	}
	return out
}

// Renew gives all that stands of the run a later expiry.
func Renew(ctx context.Context, run *rundir.Run, expiry time.Time) error {
	return everyEngine(func(e engine) error { return e.Renew(ctx, run, expiry) })
}

func everyEngine(do func(engine) error) error {
	var errs []error
	for _, e := range engines() {
		errs = append(errs, do(e))
	}
	return errors.Join(errs...)
}

// Find asks all providers what carries the label; it needs no run directory.
// When some do not answer, what the others said comes beside the error.
func Find(ctx context.Context, l Label) ([]Leftover, error) {
	return find(ctx, l, slices.Collect(maps.Values(finders())))
}

func find(ctx context.Context, l Label, where []finder) ([]Leftover, error) {
	var all []Leftover
	var errs []error
	for _, f := range where {
		found, err := f.Find(ctx, l)
		all, errs = append(all, found...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// standing is what stands of a run: what the finders of the places where it
// made things find, and what only its engines' records know of.
func standing(ctx context.Context, run *rundir.Run) ([]Leftover, error) {
	places, err := noted(run, rundir.KindPlace)
	var where []finder
	for _, e := range places {
		if f := finders()[rundir.ParsePlace(e.Ref).Provider]; f != nil {
			where = append(where, f)
		}
	}
	found, ferr := find(ctx, Label{Run: run.Short, Scope: scope()}, where)
	err = errors.Join(err, ferr)
	for _, e := range engines() {
		left, lerr := e.Left(ctx, run)
		found, err = append(found, left...), errors.Join(err, lerr)
	}
	return found, err
}

// Remove removes leftovers, in the order that they need.
func Remove(ctx context.Context, found []Leftover) error {
	of := map[string][]Leftover{}
	for _, l := range found {
		of[l.Provider] = append(of[l.Provider], l)
	}
	var errs []error
	for provider, f := range finders() {
		if len(of[provider]) > 0 {
			errs = append(errs, f.Remove(ctx, of[provider]))
		}
	}
	return errors.Join(errs...)
}
