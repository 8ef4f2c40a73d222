package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"krig/internal/experiment"
	"krig/internal/pipeline"
	"krig/internal/rundir"
)

// find turns what the user calls a run into its directory: what
// [rundir.Resolve] takes, or last.
func (a *app) find(name string) (string, error) {
	if name != "last" {
		dir, err := rundir.Resolve(a.runsDir, name)
		if err != nil {
			return "", hint(usage(err), "krig list")
		}
		return dir, nil
	}
	runs, err := rundir.List(a.runsDir)
	if err == nil && len(runs) == 0 {
		err = hint(usage(fmt.Errorf("there is no last run: %s has none", a.runsDir)), "krig list")
	}
	if err != nil {
		return "", err
	}
	return runs[len(runs)-1].Dir, nil
}

// findStanding is [app.find] for commands that are about what stands: there
// last is the newest run of which something does, since a run on a reused rig
// is newer than the rig's own. Where nothing stands it is the newest of all.
func (a *app) findStanding(name string) (string, error) {
	if name != "last" {
		return a.find(name)
	}
	runs, err := rundir.List(a.runsDir)
	if err != nil {
		return "", err
	}
	for _, info := range slices.Backward(runs) {
		if l, err := read(info); err == nil && len(l.Standing) > 0 {
			return info.Dir, nil
		}
	}
	return a.find(name)
}

// held is the newest run that this very process works on; "" when there is none.
func (a *app) held() string {
	runs, err := rundir.List(a.runsDir)
	if err != nil {
		return ""
	}
	self, id := rundir.Self(), ""
	for _, r := range runs {
		if r.Holder == self {
			id = r.ID
		}
	}
	return id
}

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
	runs, err := rundir.List(a.runsDir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := []string{"last"}
	for _, r := range runs {
		names = append(names, r.ID)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
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
	dir, err := a.findStanding(name)
	if err != nil {
		return nil, nil, err
	}
	run, err = rundir.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	s, err := pipeline.ReadStanding(run)
	if err = errors.Join(err, run.Close()); err != nil {
		return nil, nil, err
	}
	if s == nil || len(s.Hosts) == 0 {
		return nil, nil, hint(fmt.Errorf("no host of run %s stands", run.ID), "krig up FILE makes a rig that stands, krig list shows those there are")
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
		Args: args(takes(0, 0)),
		RunE: func(*cobra.Command, []string) error {
			runs, err := a.list()
			if asJSON {
				return errors.Join(writeJSON(a.Out, runs), err)
			}
			if err != nil && len(runs) == 0 {
				return err
			}
			return errors.Join(a.writeList(runs), err)
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// listed is one run as krig list shows it.
type listed struct {
	Run      string    `json:"run"`
	Name     string    `json:"name"`
	Started  time.Time `json:"started"`
	State    string    `json:"state"`    // running, standing, done or unfinished
	Done     int       `json:"done"`     // repeats with a result
	Total    int       `json:"total"`    // repeats of the plan
	Standing []string  `json:"standing"` // by kind, from the ledger
}

// list reads every run. One that cannot be read is in the error and costs no other.
func (a *app) list() ([]listed, error) {
	infos, err := rundir.List(a.runsDir)
	runs := []listed{}
	for _, info := range infos {
		l, lerr := read(info)
		if lerr != nil {
			err = errors.Join(err, fmt.Errorf("run %s: %w", info.ID, lerr))
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
func read(info rundir.Info) (l listed, err error) {
	run, err := rundir.Open(info.Dir)
	if err != nil {
		return listed{}, err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	l = listed{Run: info.ID, Name: info.Name, Started: info.Started}
	var plan experiment.Plan
	if err := run.ReadJSON(&plan, "plan.json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return listed{}, err // without one it came to an end before it began
	}
	l.Total = len(plan.Visits)
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
	l.State = state(l, info.Holder.PID != 0)
	return l, nil
}

// state is the word for a run as it is now.
func state(l listed, busy bool) string {
	switch {
	case busy:
		return "running"
	case len(l.Standing) > 0:
		return "standing"
	case l.Done < l.Total, l.Total == 0: // without a plan it never began
		return "unfinished"
	}
	return "done"
}

// kinds counts entries by kind, in the ledger's order.
func kinds(entries []rundir.Entry) []string {
	var order []string
	n, seen := map[string]int{}, map[[3]string]bool{}
	for _, e := range entries {
		thing := [3]string{e.Kind, e.Scope, e.Ref}     // one that was made sure of again has several entries
		if seen[thing] || e.Kind == rundir.KindPlace { // where things are is none of them
			continue
		}
		seen[thing] = true
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
