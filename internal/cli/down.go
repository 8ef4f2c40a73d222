package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"krig/infra"
	"krig/internal/pipeline"
)

// downCmd takes runs down.
func (a *app) downCmd() *cobra.Command {
	var all, yes bool
	cmd := &cobra.Command{
		Use:     "down RUN | down --all",
		GroupID: groupRun,
		Short:   "Take down everything that a run made",
		Long: `Take down everything that a run made, whatever state it is in: kept, interrupted,
or left by a krig that was killed. Then look again: only an empty list is
success. It may be called again. The run directory and its results stay.

--all takes down everything of krig's on this machine, also what living runs
own, after asking.`,
		Example:           "  krig down last\n  krig down k3f9ab     # also when the run directory is gone",
		ValidArgsFunction: a.completeRun,
		Args: args(func(cmd *cobra.Command, args []string) error {
			if all {
				return takes(0, 0)(cmd, args)
			}
			return takes(1, 1)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				return a.downAll(cmd.Context(), yes)
			}
			ctx, cancel := outlive(cmd.Context())
			defer cancel()
			return a.down(ctx, args[0])
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything of krig's on this machine, after asking")
	cmd.Flags().BoolVar(&yes, "yes", false, "with --all: do not ask")
	return cmd
}

// undoLimit bounds one removal.
const undoLimit = 5 * time.Minute

// outlive is a context for removing things: ^C must not end a tool in
// mid-change, and what is left would have to be removed all the same.
func outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
}

// down takes one run down; one whose directory is gone by its label.
func (a *app) down(ctx context.Context, name string) error {
	dir, missing := a.findStanding(name)
	if missing == nil {
		err := pipeline.Down(ctx, dir, a.show.event)
		a.show.close()
		if err == nil {
			a.say("nothing of run %s stands", filepath.Base(dir))
		}
		return asRoot(err)
	}
	label := infra.Label{Run: name[strings.LastIndexByte(name, '-')+1:], Scope: scope()}
	found, err := infra.Find(ctx, label)
	switch {
	case len(found) == 0 && err != nil: // something of it may stand all the same: no error of usage
		return asRoot(fmt.Errorf("%s; and what stands of it cannot be looked for: %w", missing.Error(), err))
	case len(found) == 0:
		return missing
	}
	if slices.ContainsFunc(found, func(l infra.Leftover) bool { return l.Alive }) {
		return fmt.Errorf("run %s is running: its krig lives; ^C there takes it down", name)
	}
	return asRoot(a.remove(ctx, label, found)) // which looks again, and says so when it cannot
}

// downAll takes down every run, then all that is left by its labels.
func (a *app) downAll(ctx context.Context, yes bool) error {
	label := infra.Label{Scope: scope()}
	found, err := infra.Find(ctx, label)
	if err != nil {
		return asRoot(err)
	}
	runs, err := a.list()
	standing := 0
	for _, r := range runs {
		if len(r.Standing) > 0 {
			standing++
		}
	}
	if len(found) == 0 && standing == 0 {
		a.say("nothing of krig's is on this machine")
		return err
	}
	for _, l := range found {
		a.say("%s %s of run %s", l.Kind, l.Ref, l.Run)
	}
	if !yes {
		question := fmt.Sprintf("Take down all of this (%s, %s)?", count(len(found), "thing"), count(standing, "run"))
		if err := a.ask(ctx, question); err != nil {
			return err
		}
	}
	ctx, cancel := outlive(ctx)
	defer cancel()
	for _, r := range runs {
		if len(r.Standing) == 0 {
			continue
		}
		if derr := pipeline.Down(ctx, filepath.Join(a.runsDir, r.Run), a.show.event); derr != nil {
			err = errors.Join(err, fmt.Errorf("run %s: %w", r.Run, derr))
		}
	}
	if found, ferr := infra.Find(ctx, label); ferr != nil || len(found) > 0 {
		return errors.Join(err, ferr, a.remove(ctx, label, found))
	}
	return err
}

// remove removes what was found and looks again.
func (a *app) remove(ctx context.Context, label infra.Label, found []infra.Leftover) error {
	err := infra.Remove(ctx, found)
	left, ferr := infra.Find(ctx, label)
	for _, l := range left {
		a.say("left: %s %s of run %s; try again: krig down %s", l.Kind, l.Ref, l.Run, l.Run)
	}
	if len(left) > 0 {
		err = errors.Join(leftError{len(left)}, err)
	}
	return errors.Join(err, ferr)
}
