package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"krig/infra"
	"krig/infra/lab"
	"krig/internal/rundir"
)

// labHostCmd makes and removes one lab host for a tool that calls krig back:
// the lab's Terraform module does.
func (a *app) labHostCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:    "lab-host",
		Hidden: true,
		Short:  "Make or remove one lab host",
		Long:   "Make or remove one host of the lab, for the Terraform module in infra/terraform/lab.",
		Args:   unknownCommand,
		RunE:   func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.labGroundCmd(), a.labCreateCmd(), a.labRemoveCmd(), a.labClearCmd())
	return cmd
}

// runFlag gives a command the run directory that it works in.
func runFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "run", "", "the run `DIR`")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *dir == "" {
			return usage(errors.New("--run needs a run directory"))
		}
		return nil
	}
}

func (a *app) labGroundCmd() *cobra.Command {
	var dir string
	var keep time.Duration
	cmd := &cobra.Command{
		Use:   "ground --run DIR --keep DURATION",
		Short: "Make what a run's hosts stand on, and the run directory where there is none; or put its expiry off",
		Args:  args(takes(0, 0)),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.labGround(cmd.Context(), dir, keep) },
	}
	runFlag(cmd, &dir)
	cmd.Flags().DurationVar(&keep, "keep", 24*time.Hour, "from so long on krig gc may remove it")
	return cmd
}

func (a *app) labGround(ctx context.Context, dir string, keep time.Duration) error {
	if keep <= 0 {
		return usage(fmt.Errorf("--keep %v: it must be longer than nothing", keep))
	}
	run, err := openOrMake(dir)
	if err != nil {
		return err
	}
	expiry := time.Now().Add(keep)
	err = infra.OpenLab(ctx, run, expiry)
	if err == nil {
		fmt.Fprintf(a.Out, "the lab of run %s is ready; it expires at %s\n", run.ID, expiry.UTC().Format(time.RFC3339))
	}
	return errors.Join(err, run.Close())
}

// openOrMake opens a run directory, which it makes where there is none.
func openOrMake(dir string) (*rundir.Run, error) {
	run, err := rundir.Open(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return run, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making a run directory: %w", err)
	}
	if run, err = rundir.Open(dir); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return run, nil
}

func (a *app) labCreateCmd() *cobra.Command {
	var dir, spec string
	cmd := &cobra.Command{
		Use:   "create --run DIR [--spec JSON]",
		Short: "Make one host as JSON says, by --spec or on standard input",
		Args:  args(takes(0, 0)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.readSpec(spec)
			if err != nil {
				return usage(err)
			}
			return inLab(dir, func(l *lab.Lab) error {
				return l.InLedger("create "+s.Name, func() error { return a.labCreate(cmd.Context(), l, s) })
			})
		},
	}
	runFlag(cmd, &dir)
	cmd.Flags().StringVar(&spec, "spec", "", "the host as it shall be, in `JSON`")
	return cmd
}

// readSpec reads a host as it shall be; keys that no host has are refused.
func (a *app) readSpec(text string) (lab.Spec, error) {
	from := a.In
	if text != "" {
		from = strings.NewReader(text)
	}
	var s lab.Spec
	d := json.NewDecoder(from)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("reading the host's specification: %w", err)
	}
	return s, s.Valid()
}

func (a *app) labCreate(ctx context.Context, l *lab.Lab, s lab.Spec) error {
	h, err := l.Create(ctx, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s stands at %s\n", h.Name, h.Internal)
	return nil
}

func (a *app) labRemoveCmd() *cobra.Command {
	var dir, name string
	cmd := &cobra.Command{
		Use:   "remove --run DIR --name NAME",
		Short: "Remove one host; where there is none nothing is done",
		Args:  args(takes(0, 0)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := (lab.Spec{Name: name}).Valid(); err != nil {
				return usage(err)
			}
			err := inLab(dir, func(l *lab.Lab) error {
				return l.InLedger("remove "+name, func() error { return a.labRemove(cmd.Context(), l, name) })
			})
			if errors.Is(err, lab.ErrNone) { // krig down was first
				fmt.Fprintf(a.Out, "%s is gone with its run\n", name)
				return nil
			}
			return err
		},
	}
	runFlag(cmd, &dir)
	cmd.Flags().StringVar(&name, "name", "", "the host's `NAME`")
	return cmd
}

func (a *app) labRemove(ctx context.Context, l *lab.Lab, name string) error {
	removed, err := l.RemoveOwn(ctx, name)
	switch {
	case err != nil:
	case removed:
		fmt.Fprintf(a.Out, "%s is removed\n", name)
	default:
		fmt.Fprintf(a.Out, "%s stays: another engine has made it since\n", name)
	}
	return err
}

func (a *app) labClearCmd() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "clear --run DIR",
		Short: "Remove all that the run has in the lab; the run directory stays",
		Args:  args(takes(0, 0)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := outlive(cmd.Context())
			defer cancel()
			run, err := rundir.Open(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			return errors.Join(infra.Destroy(ctx, run), run.Close())
		},
	}
	runFlag(cmd, &dir)
	return cmd
}

// inLab does something in the lab that another process has opened.
func inLab(dir string, do func(*lab.Lab) error) error {
	run, err := rundir.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.Join(lab.ErrNone, err)
	}
	if err != nil {
		return err
	}
	l, err := lab.Join(run, lab.Terraform)
	if err == nil {
		err = do(l)
	}
	return errors.Join(err, run.Close())
}
