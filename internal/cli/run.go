package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"krig/internal/experiment"
	"krig/internal/pipeline"
	"krig/internal/remote"
	"krig/reports"
)

// runFlags are what krig run is told beside the file.
type runFlags struct {
	keep   bool
	yes    bool
	set    []string
	reuse  string
	resume string
}

// runCmd does the whole flow.
func (a *app) runCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run FILE | run --resume RUN",
		GroupID: groupRun,
		Short:   "Stand the rig up, measure, report, take it down",
		Long: `Stand the rig up, start Kafka, measure every cell, write the report, and take
everything down again, whatever failed. The answer is printed; the pictures are
in report.html of the run directory.

The first ^C stops the load and takes everything down. A second one ends krig at
once and prints the krig down that finishes.`,
		Example: `  krig run examples/demo.yaml
  krig run my.yaml --set repeat=3 --set kafka.version=4.1.0
  krig run --resume last               # go on after an interruption

  krig run my.yaml --keep              # the rig stays
  krig run other.yaml --reuse last     # measure on it
  krig down last`,
		Args: args(func(cmd *cobra.Command, args []string) error {
			if f.resume != "" && (f.reuse != "" || len(f.set) > 0) {
				return errors.New("--resume goes on as the run began: without --reuse and --set")
			}
			if f.resume != "" {
				return takes(0, 0)(cmd, args)
			}
			return takes(1, 1)(cmd, args)
		}),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), f, args) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.keep, "keep", false, "leave the rig and Kafka standing at the end; krig down removes them")
	yesFlag(cmd, &f.yes)
	setFlag(cmd, &f.set)
	flags.StringVar(&f.reuse, "reuse", "", "measure on the rig that this `RUN` left standing (krig up, or run --keep); it stands on afterwards")
	flags.StringVar(&f.resume, "resume", "", "go on with this `RUN` at its first missing repeat; refuses when the experiment or krig changed")
	a.completeRuns(cmd, "reuse", "resume")
	return cmd
}

// run runs or resumes and prints how it ended.
func (a *app) run(ctx context.Context, f runFlags, args []string) error {
	o := pipeline.Options{RunsDir: a.runsDir, Keep: f.keep, Set: f.set, Version: a.version()}
	if f.resume != "" {
		dir, err := a.find(f.resume)
		if err != nil {
			return err
		}
		out, err := pipeline.Resume(ctx, dir, o, a.show.event)
		return a.resumable(out, a.outcome(out, f.keep, err))
	}
	if f.reuse != "" {
		dir, err := a.findStanding(f.reuse)
		if err != nil {
			return err
		}
		o.Reuse = dir
	}
	if err := readable(args[0]); err != nil {
		return err
	}
	if err := a.consent(ctx, args[0], f); err != nil {
		return err
	}
	out, err := pipeline.Run(ctx, args[0], o, a.show.event)
	if err = a.outcome(out, f.keep, err); f.reuse != "" {
		return err // its rig is another run's
	}
	return a.resumable(out, err)
}

// resumable tells how an interrupted run goes on.
func (a *app) resumable(out pipeline.Outcome, err error) error {
	if out.Interrupted && out.Run != nil {
		a.say("go on at the first missing repeat with: %skrig run --resume %s", a.runsPrefix(), out.Run.ID)
	}
	return err
}

// readable refuses what cannot be read again, as a run reads its experiment.
func readable(file string) error {
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return usage(fmt.Errorf("%s is a stream, and a run reads its experiment more than once: save it in a file", file))
	}
	return nil // what is not there at all is for the reader of experiments to say
}

// consent asks before a run whose rig is not the lab's: only there are money
// or other people's machines at stake.
func (a *app) consent(ctx context.Context, file string, f runFlags) error {
	_, plan, err := pipeline.Check(file, f.set...)
	if err != nil || f.yes || !atStake(plan) {
		return err
	}
	return a.ask(ctx, fmt.Sprintf("%s, about %s. Go on?", file, round(pipeline.EstimateOf(plan).Total)))
}

// atStake tells whether any cell needs hosts from elsewhere than this machine.
func atStake(plan *experiment.Plan) bool {
	for _, c := range plan.Cells {
		if c.Rig.Provider != "lab" {
			return true
		}
	}
	return false
}

// outcome prints how a run ended and returns what decides its exit code.
func (a *app) outcome(out pipeline.Outcome, kept bool, err error) error {
	a.show.close()
	if out.Result != nil {
		err = errors.Join(err, reports.Text(a.Out, out.Run, out.Result))
	}
	if out.Run != nil && out.Result != nil {
		a.say("report: %s", out.Run.Path("report.html"))
	}
	if out.Run != nil && kept && out.Leftovers == nil {
		a.say("kept standing; take it down with: %skrig down %s", a.runsPrefix(), out.Run.ID)
	}
	for _, l := range out.Leftovers {
		a.say("left: %s", l)
	}
	switch {
	case out.Interrupted && err != nil:
		return err // it says what was interrupted, and the context that it was
	case out.Interrupted:
		return errInterrupted
	case len(out.Leftovers) > 0:
		return errors.Join(leftError{len(out.Leftovers)}, err)
	case len(out.Failed) > 0:
		return errors.Join(err, fmt.Errorf("without one valid repeat: %s", strings.Join(out.Failed, ", ")))
	}
	return err
}

// upCmd makes the first cell's rig and cluster.
func (a *app) upCmd() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "up FILE",
		GroupID: groupRun,
		Short:   "Stand the first cell's rig and Kafka up and leave them",
		Long: `Make the rig of the experiment's first cell, prepare its hosts, start Kafka, and
leave everything standing. The run's id is printed.`,
		Example: `  run=$(krig up my.yaml)
  krig ssh $run b1
  krig down $run`,
		Args: args(takes(1, 1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := readable(args[0]); err != nil {
				return err
			}
			if err := a.consent(cmd.Context(), args[0], f); err != nil {
				return err
			}
			o := pipeline.Options{RunsDir: a.runsDir, Keep: true, Set: f.set, Version: a.version()}
			out, err := pipeline.Up(cmd.Context(), args[0], o, a.show.event)
			if err == nil && out.Run != nil {
				fmt.Fprintln(a.Out, out.Run.ID)
			}
			return a.outcome(out, err == nil, err)
		},
	}
	setFlag(cmd, &f.set)
	yesFlag(cmd, &f.yes)
	return cmd
}

// interrupted says what the first signal does, where there is something to undo.
func (a *app) interrupted() {
	if a.held() != "" {
		a.say("interrupted: taking everything down; a second ^C ends krig at once")
	}
}

// abandon says how to finish what krig leaves when it ends at once.
func (a *app) abandon() {
	a.show.close()
	if run := a.held(); run != "" {
		fmt.Fprintf(a.Err, "krig: ended before everything was taken down; finish with: %skrig down %s\n", a.runsPrefix(), run)
	}
}

// runsPrefix is what a printed command needs in front so that it finds the run.
func (a *app) runsPrefix() string {
	if filepath.Clean(a.runsDir) == "runs" {
		return ""
	}
	return "KRIG_RUNS=" + remote.Quote(a.runsDir) + " "
}

// ask puts a question that only yes answers. Without a terminal it refuses.
func (a *app) ask(ctx context.Context, question string) error {
	if !terminal(a.In) {
		return hint(usage(errors.New("this asks first, and there is no terminal to ask on")), "--yes goes on without asking")
	}
	a.show.close()
	fmt.Fprintf(a.Err, "%s [y/N] ", question)
	answer := make(chan string, 1)
	go func() { // a read cannot be cancelled: the process ends with it still waiting
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case got := <-answer:
		if got == "y" || got == "yes" {
			return nil
		}
		return errors.New("not confirmed: nothing was touched")
	}
}
