package cli

import (
	"context"
	"fmt"
	"os/exec"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"krig/internal/experiment"
)

// toolLimit bounds asking a program for its version.
const toolLimit = 10 * time.Second

// versionCmd prints the versions of everything.
func (a *app) versionCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		GroupID: groupMachine,
		Short:   "Print the versions of krig and of what it drives",
		Args:    args(takes(0, 0)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := a.versions(cmd.Context())
			if asJSON {
				return writeJSON(a.Out, v)
			}
			_, err := fmt.Fprint(a.Out, v.text())
			return err
		},
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// versions of krig and of what it drives; a program that is not there is "".
type versions struct {
	Krig  string            `json:"krig"`
	Go    string            `json:"go"`
	Kafka string            `json:"kafka"` // what runs unless the experiment says otherwise
	Tools map[string]string `json:"tools"`
}

// defaultKafka is the version that an experiment gets which names none.
func defaultKafka() string {
	field, _ := reflect.TypeFor[experiment.Kafka]().FieldByName("Version")
	return field.Tag.Get("default")
}

// tools are the programs whose version is asked, with how to ask.
func tools() [][]string {
	return [][]string{
		{"podman", "--version"}, {"runc", "--version"}, {"java", "-version"}, {"mvn", "--version"}, {"sar", "-V"},
		{"ssh", "-V"}, {"tofu", "version"}, {"terraform", "version"}, {"pulumi", "version"},
	}
}

func (a *app) versions(ctx context.Context) versions {
	v := versions{
		Krig:  a.version(),
		Go:    runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Kafka: defaultKafka(),
		Tools: map[string]string{},
	}
	for _, argv := range tools() {
		v.Tools[argv[0]] = toolVersion(ctx, argv)
	}
	return v
}

// colour is what a terminal takes for one.
var colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// toolVersion is the first line with a number that a program prints of itself,
// "" when there is no such program, and how it failed when it did.
func toolVersion(ctx context.Context, argv []string) string {
	if _, err := exec.LookPath(argv[0]); err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	said := ""
	for line := range strings.Lines(string(out)) {
		if strings.ContainsAny(line, "0123456789") {
			said = strings.TrimSpace(colour.ReplaceAllString(line, ""))
			break
		}
	}
	if err != nil {
		return fmt.Sprintf("does not say (%v): %s", err, said)
	}
	return said
}

// text is the versions for people.
func (v versions) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "krig       %s\ngo         %s\nkafka      %s unless the experiment says otherwise\n", v.Krig, v.Go, v.Kafka)
	for _, argv := range tools() {
		said := v.Tools[argv[0]]
		if said == "" {
			said = "not found"
		}
		fmt.Fprintf(&b, "%-10s %s\n", argv[0], said)
	}
	return b.String()
}
