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
command that installs it. Exit code 1 when something is missing; what a run
merely does less well without is a warning.`,
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
	What    string `json:"what"`
	OK      bool   `json:"ok"`
	Warning bool   `json:"warning,omitempty"` // a run works without it, but less well
	Remedy  string `json:"remedy,omitempty"`  // the command that gives it
}

// word is how a finding is shown.
func (f finding) word() string {
	switch {
	case f.OK:
		return "ok"
	case f.Warning:
		return "warning"
	}
	return "missing"
}

func (a *app) doctor(ctx context.Context, cells []*experiment.Cell, asJSON bool) error {
	return a.tell(append(lacks(infra.Check(ctx, cells)), programs(cells)...), asJSON)
}

// tell prints what was found; things that are missing are an error.
func (a *app) tell(found []finding, asJSON bool) error {
	if asJSON {
		if err := writeJSON(a.Out, found); err != nil {
			return err
		}
	} else {
		t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
		for _, f := range found {
			fmt.Fprintf(t, "%s\t%s\t%s\n", f.word(), f.What, f.Remedy)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	missing := 0
	for _, f := range found {
		if !f.OK && !f.Warning {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("this machine lacks %s", count(missing, "thing"))
	}
	return nil
}

// lacks are what infra misses, with that it misses nothing but for warnings.
func lacks(missing []infra.Lack) []finding {
	var out []finding
	if !slices.ContainsFunc(missing, func(l infra.Lack) bool { return !l.Warning }) {
		out = append(out, finding{What: "lab hosts (podman, namespaces, loop devices, shaping)", OK: true})
	}
	for _, l := range missing {
		out = append(out, finding{What: l.What, Warning: l.Warning, Remedy: l.Remedy})
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
		f := finding{What: w[0], OK: true}
		if _, err := exec.LookPath(w[0]); err != nil {
			f.OK, f.Remedy = false, "apt-get install -y --no-install-recommends "+w[1]
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
