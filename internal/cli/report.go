package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"krig/internal/result"
	"krig/internal/rundir"
	"krig/reports"
)

// formats are what krig report writes, the default first.
func formats() []string { return []string{"text", "html", "json", "csv"} }

// reportCmd writes a run's report.
func (a *app) reportCmd() *cobra.Command {
	var format, file string
	cmd := &cobra.Command{
		Use:     "report RUN",
		GroupID: groupResult,
		Short:   "Write a run's report",
		Long: `Write the report of a run, also of one that was cut short: its finished repeats
are all there. RUN is an id, its beginning, its last six letters, a run
directory, or last: the newest.`,
		Example: `  krig report last
  krig report last --format html -o report.html
  krig report runs/demo-20261130T201500Z-k3f9ab --format csv > demo.csv`,
		Args:              args(takes(1, 1)),
		ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(formats(), format) {
				return usage(fmt.Errorf("--format %s: there is no such format; it is one of %s", format, strings.Join(formats(), ", ")))
			}
			return a.report(args[0], format, file)
		},
	}
	cmd.Flags().StringVar(&format, "format", formats()[0], "`FORMAT` is "+strings.Join(formats(), ", "))
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `FILE` instead of standard output")
	complete(cmd, "format", formats()...)
	return cmd
}

// report writes the report of a run to file, or to standard output.
func (a *app) report(name, format, file string) (err error) {
	run, err := a.open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	res, err := results(run)
	if err != nil {
		return err
	}
	if file == "" {
		return writeReport(a.Out, format, run, res)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := errors.Join(writeReport(f, format, run, res), f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}

// results are a run's results: as written at its end, or gathered from the
// finished repeats of one that never came to it.
func results(run *rundir.Run) (*result.Run, error) {
	var res result.Run
	err := run.ReadJSON(&res, "result.json")
	if errors.Is(err, fs.ErrNotExist) {
		return reports.Write(run)
	}
	return &res, err
}

func writeReport(w io.Writer, format string, run *rundir.Run, res *result.Run) error {
	switch format {
	case "html":
		return reports.HTML(w, run, res)
	case "json":
		return writeJSON(w, res)
	case "csv":
		return reports.CSV(w, res)
	}
	return reports.Text(w, run, res)
}

// complete gives the shell the values of a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is not defined: a bug
	}
}
