package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/pipeline"
	"krig/internal/rundir"
	"krig/provision"
)

// doctorCmd says what this machine lacks.
func (a *app) doctorCmd() *cobra.Command {
	var asJSON, fetch bool
	cmd := &cobra.Command{
		Use:     "doctor [FILE]",
		GroupID: groupMachine,
		Short:   "Say what this machine lacks, and the command that installs it",
		Long: `Say what this machine lacks for the lab, or for what FILE asks, each with the
command that installs it. Exit code 1 when something is missing.`,
		Args: args(takes(0, 1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var cells []*experiment.Cell
			if len(args) == 1 {
				_, plan, err := pipeline.Check(args[0])
				if err != nil {
					return err
				}
				cells = plan.Cells
			}
			if fetch {
				return a.fetch(cmd.Context(), cells)
			}
			return a.doctor(cmd.Context(), cells, asJSON)
		},
	}
	jsonFlag(cmd, &asJSON)
	cmd.Flags().BoolVar(&fetch, "fetch", false, "fetch the Kafka of FILE, or the newest tested one, into the cache, and nothing else")
	return cmd
}

// finding is one thing that the doctor looked at.
type finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Remedy string `json:"remedy,omitempty"` // the command that gives it; "" when it is there
}

func (a *app) doctor(ctx context.Context, cells []*experiment.Cell, asJSON bool) error {
	found := append(lacks(infra.Check(ctx, cells)), programs(cells)...)
	missing := slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.Remedy == "" })
	if asJSON {
		for i := range found {
			found[i].OK = found[i].Remedy == ""
		}
		if err := writeJSON(a.Out, found); err != nil {
			return err
		}
	} else {
		t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
		for _, f := range found {
			if f.Remedy == "" {
				fmt.Fprintf(t, "ok\t%s\t\n", f.What)
			} else {
				fmt.Fprintf(t, "missing\t%s\t%s\n", f.What, f.Remedy)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("this machine lacks %s", count(len(missing), "thing"))
	}
	return nil
}

// lacks are what infra misses, or that it misses nothing.
func lacks(missing []infra.Lack) []finding {
	if len(missing) == 0 {
		return []finding{{What: "lab hosts (podman, namespaces, loop devices, shaping)"}}
	}
	var out []finding
	for _, l := range missing {
		out = append(out, finding{What: l.What, Remedy: l.Remedy})
	}
	return out
}

// programs are those that the other stages run, found or missing.
func programs(cells []*experiment.Cell) []finding {
	wanted := [][2]string{ // program, Debian package
		{"java", "openjdk-17-jre-headless"},
		{"sar", "sysstat"},
		{"ssh", "openssh-client"},
	}
	if fromMaven(cells) {
		wanted = append(wanted, [2]string{"mvn", "maven"})
	}
	var out []finding
	for _, w := range wanted {
		f := finding{What: w[0]}
		if _, err := exec.LookPath(w[0]); err != nil {
			f.Remedy = "apt-get install -y --no-install-recommends " + w[1]
		}
		out = append(out, f)
	}
	return out
}

// fromMaven tells whether any Kafka comes from Maven; with no cells the
// default does.
func fromMaven(cells []*experiment.Cell) bool {
	return len(cells) == 0 || slices.ContainsFunc(cells, func(c *experiment.Cell) bool {
		return c.Kafka.Source.Archive == "" && c.Kafka.Source.Directory == ""
	})
}

// fetch puts the cells' Kafka, or the default one, into the cache.
func (a *app) fetch(ctx context.Context, cells []*experiment.Cell) error {
	kafkas := map[string]experiment.Kafka{}
	for _, c := range cells {
		kafkas[fmt.Sprint(c.Kafka.Version, c.Kafka.Source)] = c.Kafka
	}
	if len(cells) == 0 {
		kafkas[""] = experiment.Kafka{Version: defaultKafka()}
	}
	run := &rundir.Run{}
	run.Listen(a.show.event)
	var err error
	for _, k := range kafkas {
		dir, ferr := provision.Distribution(ctx, run, k)
		if ferr != nil {
			err = errors.Join(err, fmt.Errorf("fetching Kafka %s: %w", k.Version, ferr))
			continue
		}
		a.say("Kafka %s is in %s", k.Version, dir)
	}
	return err
}
