package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"krig/infra"
)

// scope is the label that keeps the things of tests apart from all others.
func scope() string { return os.Getenv("KRIG_SCOPE") }

// gcCmd removes what dead runs left.
func (a *app) gcCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "gc",
		GroupID: groupMachine,
		Short:   "Remove what dead runs left on this machine",
		Long: `Find everything of krig's on this machine by its labels, without any run
directory; remove what a krig that no longer lives left, and what was kept and
has expired; list the rest: what a living krig owns, and what was kept. Exit
code 0 when nothing that may be removed is left.`,
		Args: args(takes(0, 0)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := outlive(cmd.Context())
			defer cancel()
			return a.gc(ctx, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// collected is what krig gc did.
type collected struct {
	Removed []infra.Leftover `json:"removed"`
	Left    []infra.Leftover `json:"left"` // may be removed, but could not be
	Stands  []infra.Leftover `json:"stands"`
}

func (a *app) gc(ctx context.Context, asJSON bool) error {
	label := infra.Label{Scope: scope()}
	before, err := infra.Find(ctx, label)
	if err != nil {
		return asRoot(fmt.Errorf("looking for what is krig's: %w", err))
	}
	removable := only(before, func(l infra.Leftover) bool { return l.May })
	err = infra.Remove(ctx, removable)
	after, ferr := infra.Find(ctx, label)
	if ferr != nil {
		return errors.Join(err, fmt.Errorf("looking again: %w", ferr))
	}
	out := sift(removable, after)
	if asJSON {
		err = errors.Join(err, writeJSON(a.Out, out))
	} else {
		err = errors.Join(err, a.writeCollected(out))
	}
	if len(out.Left) > 0 {
		return errors.Join(leftError{len(out.Left)}, err)
	}
	return err
}

// sift tells what was removed of removable from what stands after.
func sift(removable, after []infra.Leftover) collected {
	out := collected{Removed: []infra.Leftover{}, Left: []infra.Leftover{}, Stands: []infra.Leftover{}}
	stands := map[[2]string]bool{}
	for _, l := range after {
		stands[[2]string{l.Kind, l.Ref}] = true
		if l.May {
			out.Left = append(out.Left, l)
		} else {
			out.Stands = append(out.Stands, l)
		}
	}
	for _, l := range removable {
		if !stands[[2]string{l.Kind, l.Ref}] {
			out.Removed = append(out.Removed, l)
		}
	}
	return out
}

func only(all []infra.Leftover, keep func(infra.Leftover) bool) []infra.Leftover {
	var out []infra.Leftover
	for _, l := range all {
		if keep(l) {
			out = append(out, l)
		}
	}
	return out
}

// writeCollected prints one line for each thing, or that there is none.
func (a *app) writeCollected(c collected) error {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, l := range c.Removed {
		fmt.Fprintf(t, "removed\t%s\t%s\trun %s\t\n", l.Kind, l.Ref, l.Run)
	}
	for _, l := range c.Left {
		fmt.Fprintf(t, "left\t%s\t%s\trun %s\ttry again: krig gc\n", l.Kind, l.Ref, l.Run)
	}
	for _, l := range c.Stands {
		fmt.Fprintf(t, "stands\t%s\t%s\trun %s\t%s\n", l.Kind, l.Ref, l.Run, why(l))
	}
	if len(c.Removed)+len(c.Left)+len(c.Stands) == 0 {
		a.say("nothing of krig's is on this machine")
	}
	return t.Flush()
}

// why a leftover stands.
func why(l infra.Leftover) string {
	var out []string
	if l.Alive {
		out = append(out, "its krig lives")
	}
	if l.Hold == "kept" {
		out = append(out, "kept: krig down "+l.Run)
		if !l.Expiry.IsZero() {
			out = append(out, "until "+l.Expiry.Local().Format(time.DateTime))
		}
	}
	return strings.Join(out, ", ")
}
