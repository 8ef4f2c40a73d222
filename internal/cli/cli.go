// Package cli is krig's command line: cobra commands, exit codes, questions
// and progress. It decides nothing about rigs or loads; internal/pipeline and
// the stages do. Data goes to standard output, everything else to standard
// error; only this package prints.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// IO is what a command reads and writes, and what interrupts it.
type IO struct {
	In      io.Reader
	Out     io.Writer // data
	Err     io.Writer // everything else
	Signals <-chan os.Signal
	Version string // krig's own; "" to ask the build information
}

// errInterrupted is the cause of a context that the user's signal ended.
var errInterrupted = errors.New("interrupted")

// app is one invocation of krig.
type app struct {
	IO
	runsDir string
	show    *progress
}

// Main runs one command line and returns its exit code. The first signal
// cancels the command, which then takes down what it made; at the second Main
// returns at once, and the caller ends the process.
func Main(ctx context.Context, args []string, stdio IO) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &app{IO: stdio}
	a.show = newProgress(a.Err)
	done := make(chan int, 1)
	go func() { done <- a.execute(ctx, args) }()
	for first := true; ; first = false {
		select {
		case code := <-done:
			return code
		case <-stdio.Signals:
			if !first {
				a.abandon()
				return exitInterrupted
			}
			a.interrupted()
			cancel(errInterrupted)
		}
	}
}

// execute parses and runs the command line and prints its error, once.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(slices.Concat([]string{}, args)) // never nil: cobra would take the process's own
	cmd, err := root.ExecuteContextC(ctx)
	a.show.close()
	a.printError(cmd, err)
	return exitCode(ctx, err)
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "krig",
		Short: "Measure how fast Kafka runs on a set of machines",
		Long: `krig stands a Kafka test rig up, measures it, and takes it down, from one file:

  krig run experiment.yaml

A RUN is an id, its beginning, its last six letters, a run directory, or last.
Data goes to standard output, everything else to standard error.
Exit codes: 0 done; 1 failed, or a cell without one valid repeat; 2 usage or a
bad experiment (nothing was touched); 3 measured, but teardown left something;
130 interrupted (after teardown).`,
		Example: `  krig init lab my.yaml     # a commented experiment to start from
  krig plan my.yaml         # what would be done, and how long it takes
  krig run my.yaml          # do it
  krig report last          # the answer again
  krig list                 # all runs, and what of them stands
  krig down last            # takes down what stands, whatever happened`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if a.runsDir == "" {
				return usage(errors.New("--runs needs a directory"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	root.PersistentFlags().StringVar(&a.runsDir, "runs", envOr("KRIG_RUNS", "runs"), "run directories live in `DIR` (KRIG_RUNS)")
	root.PersistentFlags().Lookup("runs").DefValue = "runs" // help is the same on every machine
	root.AddGroup(
		&cobra.Group{ID: groupFile, Title: "The experiment file:"},
		&cobra.Group{ID: groupRun, Title: "Runs and rigs:"},
		&cobra.Group{ID: groupResult, Title: "Results:"},
		&cobra.Group{ID: groupMachine, Title: "This machine and krig itself:"},
	)
	root.SetHelpCommand(helpCmd())
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		a.initCmd(), a.checkCmd(), a.planCmd(), a.schemaCmd(),
		a.runCmd(), a.upCmd(), a.downCmd(), a.listCmd(), a.sshCmd(),
		a.reportCmd(), a.logsCmd(),
		a.doctorCmd(), a.gcCmd(), a.versionCmd(), a.completionCmd(),
		a.labHostCmd(),
	)
	return root
}

// The groups in which help lists the commands.
const (
	groupFile    = "file"
	groupRun     = "run"
	groupResult  = "result"
	groupMachine = "machine"
)

// unknownCommand refuses what is no command, with the names that come near.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("there is no command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return hint(usage(err), fmt.Sprintf("did you mean krig %s?", near[0]))
	}
	return usage(err)
}

// args wraps a check of arguments so that its error is one of usage and shows the form.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(fmt.Errorf("%w; the form is: %s", err, cmd.UseLine()))
		}
		return nil
	}
}

// takes checks the number of arguments.
func takes(least, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch n := len(args); {
		case n < least:
			return errors.New("an argument is missing")
		case n > most:
			return fmt.Errorf("%q is one argument too many", args[most])
		}
		return nil
	}
}

// helpCmd prints the help of a command and, unlike cobra's own, refuses what is none.
func helpCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		GroupID: groupMachine,
		Short:   "Help about any command",
		Long:    "Print the help of a command, or of krig.",
		Args:    args(takes(0, 1)),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range cmd.Root().Commands() {
				if len(args) == 0 && c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			about, _, err := cmd.Root().Find(args)
			if err != nil || about == cmd.Root() && len(args) > 0 {
				return unknownCommand(cmd.Root(), args)
			}
			about.InitDefaultHelpFlag() // its own line of the help
			return about.Help()
		},
	}
}

// version is krig's own: what the linker set, else what the build recorded.
func (a *app) version() string {
	if a.Version != "" {
		return a.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// terminal tells whether a stream is a terminal.
func terminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// say prints a line for the user on standard error.
func (a *app) say(format string, args ...any) { a.show.line(fmt.Sprintf(format, args...)) }
