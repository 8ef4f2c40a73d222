package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"krig/internal/experiment"
	"krig/internal/pipeline"
)

// planCmd shows what a run would do.
func (a *app) planCmd() *cobra.Command {
	var (
		asJSON bool
		set    []string
	)
	cmd := &cobra.Command{
		Use:     "plan FILE",
		GroupID: groupFile,
		Short:   "Show what a run would do, and how long it takes",
		Long: `Show the repeats in the order in which they are measured, the hosts that each
needs, what changes before it, and the estimated time. The estimate is rough
until this machine has run such stages. Nothing is touched.`,
		Args: args(takes(1, 1)),
		RunE: func(_ *cobra.Command, args []string) error {
			_, plan, err := pipeline.Check(args[0], set...)
			if err != nil {
				return err
			}
			if asJSON {
				return writePlanJSON(a.Out, plan)
			}
			return writePlan(a.Out, plan)
		},
	}
	setFlag(cmd, &set)
	jsonFlag(cmd, &asJSON)
	return cmd
}

// jsonFlag gives a command the flag of those that programs read.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON, for programs")
}

// planned is a plan as krig plan --json prints it.
type planned struct {
	*experiment.Plan
	Estimate struct {
		Seconds float64   `json:"seconds"`
		Rough   bool      `json:"rough"`
		Visits  []float64 `json:"visits"` // seconds of each visit, its changes included
	} `json:"estimate"`
	Hosts []map[string]int `json:"hosts"` // of each cell, by pool
}

func writePlanJSON(w io.Writer, plan *experiment.Plan) error {
	e := pipeline.EstimateOf(plan)
	out := planned{Plan: plan}
	out.Estimate.Seconds, out.Estimate.Rough = e.Total.Seconds(), e.Rough
	for _, d := range e.Visits {
		out.Estimate.Visits = append(out.Estimate.Visits, d.Seconds())
	}
	for _, c := range plan.Cells {
		out.Hosts = append(out.Hosts, c.Hosts())
	}
	return writeJSON(w, out)
}

// writeJSON prints a value for programs.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writePlan prints a plan for people.
func writePlan(w io.Writer, plan *experiment.Plan) error {
	e := pipeline.EstimateOf(plan)
	fmt.Fprintf(w, "%s: %s, %s, order %s, seed %d\n\n", plan.Name,
		count(len(plan.Cells), "cell"), count(len(plan.Visits), "repeat"), plan.Order, plan.Seed)
	paths := axisPaths(plan)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(slices.Concat([]string{"#"}, paths, []string{"REPEAT", "HOSTS", "FIRST", "TIME"}), "\t"))
	var last *experiment.Cell
	for i, v := range plan.Visits {
		cell := plan.Cells[v.Cell]
		row := slices.Concat([]string{fmt.Sprint(i + 1)}, axisValues(cell, paths),
			[]string{fmt.Sprint(v.Repeat), hosts(cell), change(last, cell), round(e.Visits[i])})
		fmt.Fprintln(t, strings.Join(row, "\t"))
		last = cell
	}
	if err := t.Flush(); err != nil {
		return err
	}
	rough := ""
	if e.Rough {
		rough = " (rough: this machine has not run all of these stages yet)"
	}
	if _, err := fmt.Fprintf(w, "\nestimated time: %s%s\n", round(e.Total), rough); err != nil {
		return err
	}
	return writeUnfindable(w, plan)
}

// writeUnfindable says of which rigs nobody can be asked what stands.
func writeUnfindable(w io.Writer, plan *experiment.Plan) error {
	said := map[string]bool{}
	for _, c := range plan.Cells {
		if c.Rig.Module.Finder != "none" || said[c.RigName] {
			continue
		}
		said[c.RigName] = true
		_, err := fmt.Fprintf(w, "\nrig %s: finder none: after a kill only the module's own state tells what stands; krig down RUN destroys by it,\nkrig gc finds none of it. Keep the run directory until krig down has succeeded.\n", c.RigName)
		if err != nil {
			return err
		}
	}
	return nil
}

// axisPaths are all paths that the plan's cells vary, in the matrix's order.
func axisPaths(plan *experiment.Plan) []string {
	var paths []string
	for _, c := range plan.Cells {
		for _, ax := range c.Axes {
			if !slices.Contains(paths, ax.Path) {
				paths = append(paths, ax.Path)
			}
		}
	}
	return paths
}

// axisValues are a cell's values of the paths; "-" where it has none.
func axisValues(c *experiment.Cell, paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = "-"
		if at := slices.IndexFunc(c.Axes, func(ax experiment.Axis) bool { return ax.Path == p }); at >= 0 {
			out[i] = c.Axes[at].Value
		}
	}
	return out
}

// hosts is how many hosts a cell has, by pool.
func hosts(c *experiment.Cell) string {
	n := c.Hosts()
	var out []string
	for _, pool := range []string{"controllers", "brokers", "workers"} {
		if n[pool] > 0 {
			out = append(out, count(n[pool], strings.TrimSuffix(pool, "s")))
		}
	}
	return strings.Join(out, ", ")
}

// change says what happens before b is measured where a was.
func change(a, b *experiment.Cell) string {
	if a == nil || a.RigName != b.RigName {
		return "hosts made, Kafka started"
	}
	switch t := experiment.Between(a, b); {
	case t.Infra:
		return "hosts made again"
	case t.Prepare:
		return "hosts prepared again"
	case t.Cluster && a.Hosts()["brokers"] != b.Hosts()["brokers"]:
		return "number of hosts changes and the quorum with it: Kafka wiped and started anew"
	case t.Cluster:
		return "Kafka wiped and started anew"
	case t.Resize:
		return "number of hosts changes, Kafka stands"
	}
	return ""
}

// round is a length of time as people say it.
func round(d time.Duration) string {
	if d >= 10*time.Minute {
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}
