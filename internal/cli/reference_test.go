package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write commands.md anew")

// commands.md is what the commands say of themselves, so that it is never
// behind them. (examples/REFERENCE.md does the same for the keys of the file.)
func TestReferenceIsInStep(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The commands of krig\n\nMade from krig itself by `go test ./internal/cli -run Reference -update`; the keys of the experiment file are in [examples/REFERENCE.md](../../examples/REFERENCE.md).\n\n")
	root := (&app{IO: IO{Out: io.Discard, Err: io.Discard}, show: newProgress(io.Discard)}).root()
	describe(&b, root)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			describe(&b, c)
		}
	}

	inStep(t, "commands.md", b.String())
}

// inStep compares a page with its file, or writes it with -update.
func inStep(t *testing.T, file, page string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page {
		t.Errorf("%s is behind: go test ./internal/cli -run Reference -update", file)
	}
}

// describe writes one command.
func describe(b *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "## %s\n\n```\n%s\n```\n\n```text\n%s\n```\n\n", c.CommandPath(), c.UseLine(), text)
	if c.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", strings.ReplaceAll(strings.TrimPrefix(c.Example, "  "), "\n  ", "\n"))
	}
	table := false
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if !table {
			table = true
			b.WriteString("| flag | meaning |\n|---|---|\n")
		}
		value, meaning := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.TrimSpace(name+" "+value), meaning)
	})
	if table {
		b.WriteString("\n")
	}
}
