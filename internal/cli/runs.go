package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"krig/internal/experiment"
	"krig/internal/pipeline"
	"krig/internal/rundir"
)

// find turns what the user calls a run into its directory: a path, an id, the
// beginning of one, a short id, or last.
func (a *app) find(name string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		return name, isRun(name)
	}
	ids, err := a.runIDs()
	if err != nil {
		return "", err
	}
	if name == "last" && len(ids) > 0 {
		return filepath.Join(a.runsDir, ids[len(ids)-1]), nil
	}
	matches := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		return !strings.HasPrefix(id, name) && short(id) != name
	})
	switch {
	case len(matches) == 1, slices.Contains(matches, name):
		if slices.Contains(matches, name) {
			matches[0] = name
		}
		return filepath.Join(a.runsDir, matches[0]), nil
	case len(matches) > 1:
		return "", usage(fmt.Errorf("%s is the beginning of %s: %s", name, count(len(matches), "run"), strings.Join(matches, ", ")))
	}
	return "", hint(usage(fmt.Errorf("there is no run %s in %s", name, a.runsDir)), "krig list")
}

// isRun refuses a directory that is no run directory.
func isRun(dir string) error {
	_, err := os.Stat(filepath.Join(dir, "plan.json"))
	if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "not a directory") {
		return usage(fmt.Errorf("%s is no run directory: it has no plan.json", dir))
	}
	return err
}

// runIDs are the runs in the runs directory, oldest first.
func (a *app) runIDs() ([]string, error) {
	entries, err := os.ReadDir(a.runsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && len(strings.Split(e.Name(), "-")) >= 3 {
			ids = append(ids, e.Name())
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(begun(a), begun(b)) })
	return ids, nil
}

// begun is the part of an id that says when the run began.
func begun(id string) string {
	parts := strings.Split(id, "-")
	return parts[len(parts)-2]
}

// short is the last part of an id: what names of krig's things contain.
func short(id string) string { return id[strings.LastIndexByte(id, '-')+1:] }

// open opens the run that the user names, for reading.
func (a *app) open(name string) (*rundir.Run, error) {
	dir, err := a.find(name)
	if err != nil {
		return nil, err
	}
	return rundir.Open(dir)
}

// completeRun completes the id of a run as the first argument.
func (a *app) completeRun(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids, err := a.runIDs()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return append(ids, "last"), cobra.ShellCompDirectiveNoFileComp
}

// completeRuns completes the id of a run as the value of flags.
func (a *app) completeRuns(cmd *cobra.Command, flags ...string) {
	for _, f := range flags {
		err := cmd.RegisterFlagCompletionFunc(f, func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return a.completeRun(cmd, nil, typed)
		})
		if err != nil {
			panic(err) // the flag is not defined: a bug
		}
	}
}

// completeRunHost completes a run, then one of its hosts or roles.
func (a *app) completeRunHost(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeRun(cmd, args, typed)
	}
	if len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	_, hosts, err := a.standing(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return append(hostNames(hosts), "broker", "controller", "worker", "all"), cobra.ShellCompDirectiveNoFileComp
}

// standing are a run's directory and its hosts that stand.
func (a *app) standing(name string) (run *rundir.Run, hosts []rundir.Host, err error) {
	run, err = a.open(name)
	if err != nil {
		return nil, nil, err
	}
	s, err := pipeline.ReadStanding(run)
	if err = errors.Join(err, run.Close()); err != nil {
		return nil, nil, err
	}
	if s == nil || len(s.Hosts) == 0 {
		return nil, nil, fmt.Errorf("no host of run %s stands", run.ID)
	}
	return run, s.Hosts, nil
}

// listCmd lists runs.
func (a *app) listCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		GroupID: groupRun,
		Short:   "List runs, their state, and what of them still stands",
		Long: `List the runs of the runs directory, oldest first, with what of each still
stands on this machine. States: running; standing (kept, or left by a krig that
was killed: krig down takes it away); done; unfinished (krig run --resume goes on).`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			runs, err := a.list()
			if asJSON {
				return errors.Join(writeJSON(a.Out, runs), err)
			}
			return errors.Join(a.writeList(runs), err)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// listed is one run as krig list shows it.
type listed struct {
	Run      string   `json:"run"`
	Name     string   `json:"name"`
	State    string   `json:"state"` // running, standing, done or unfinished
	Done     int      `json:"done"`  // repeats with a result
	Total    int      `json:"total"` // repeats of the plan
	Standing []string `json:"standing"`
}

// list reads every run. One that cannot be read is in the error and costs no other.
func (a *app) list() ([]listed, error) {
	ids, err := a.runIDs()
	runs := []listed{}
	for _, id := range ids {
		l, lerr := read(filepath.Join(a.runsDir, id))
		if lerr != nil {
			err = errors.Join(err, fmt.Errorf("run %s: %w", id, lerr))
			continue
		}
		runs = append(runs, l)
	}
	return runs, err
}

func (a *app) writeList(runs []listed) error {
	if len(runs) == 0 {
		a.say("no runs in %s", a.runsDir)
		return nil
	}
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RUN\tSTATE\tREPEATS\tSTANDING")
	for _, l := range runs {
		standing := strings.Join(l.Standing, ", ")
		if standing == "" {
			standing = "nothing"
		}
		fmt.Fprintf(t, "%s\t%s\t%d of %d\t%s\n", l.Run, l.State, l.Done, l.Total, standing)
	}
	return t.Flush()
}

// read reads what a run directory says of its run.
func read(dir string) (l listed, err error) {
	run, err := rundir.Open(dir)
	if err != nil {
		return listed{}, err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	var plan experiment.Plan
	if err := run.ReadJSON(&plan, "plan.json"); err != nil {
		return listed{}, err
	}
	l = listed{Run: run.ID, Name: plan.Name, Total: len(plan.Visits)}
	for _, v := range plan.Visits {
		_, err := os.Stat(run.Path("cells", plan.Cells[v.Cell].ID, fmt.Sprint(v.Repeat), "result.json"))
		if err == nil {
			l.Done++
		}
	}
	stands, err := run.Ledger.Standing()
	if err != nil {
		return listed{}, err
	}
	l.Standing = kinds(stands)
	l.State = state(l, run.Busy())
	return l, nil
}

// state is the word for a run as it is now.
func state(l listed, busy bool) string {
	switch {
	case busy:
		return "running"
	case len(l.Standing) > 0:
		return "standing"
	case l.Done < l.Total:
		return "unfinished"
	}
	return "done"
}

// kinds counts entries by kind, in the ledger's order.
func kinds(entries []rundir.Entry) []string {
	var order []string
	n := map[string]int{}
	for _, e := range entries {
		if n[e.Kind] == 0 {
			order = append(order, e.Kind)
		}
		n[e.Kind]++
	}
	out := []string{}
	for _, k := range order {
		out = append(out, count(n[k], k))
	}
	return out
}
