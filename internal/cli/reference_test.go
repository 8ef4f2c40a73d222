package cli

import (
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"krig/internal/experiment"
)

var update = flag.Bool("update", false, "write reference.md and golden files anew")

// reference.md is what the commands and the experiment's types say of
// themselves, so that it is never behind either.
func TestReferenceIsInStep(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Reference\n\nGenerated from krig itself by `go test ./internal/cli -run Reference -update`.\n\n## Commands\n\n")
	root := (&app{IO: IO{Out: io.Discard, Err: io.Discard}, show: newProgress(io.Discard)}).root()
	describe(&b, root)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			describe(&b, c)
		}
	}
	b.WriteString("## Keys of the experiment file\n\n| key | value | default | meaning | a change between cells costs |\n|---|---|---|---|---|\n")
	keys(&b, "", reflect.TypeFor[experiment.Experiment](), "", map[reflect.Type]string{})

	const file = "reference.md"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Errorf("%s is behind the commands or keys: go test ./internal/cli -run Reference -update", file)
	}
}

// describe writes one command.
func describe(b *strings.Builder, c *cobra.Command) {
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "### %s\n\n```\n%s\n```\n\n```text\n%s\n```\n\n", c.CommandPath(), c.UseLine(), text)
	if c.Example != "" {
		fmt.Fprintf(b, "```sh\n%s\n```\n\n", c.Example)
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

// keys writes a row for each key of a struct of the experiment's, its own keys below it.
func keys(b *strings.Builder, path string, t reflect.Type, cost string, seen map[reflect.Type]string) {
	if first, ok := seen[t]; ok && first != path {
		fmt.Fprintf(b, "| `%s*` | | | as `%s*` | |\n", path, first)
		return
	}
	seen[t] = path
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		own := f.Tag.Get("cost")
		if own == "" {
			own = cost
		}
		standard := f.Tag.Get("default")
		if f.Tag.Get("required") == "true" {
			standard = "required"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", path+name, value(f), standard, f.Tag.Get("doc"), own)
		below, elem := path+name+".", f.Type
		switch elem.Kind() {
		case reflect.Map:
			elem, below = elem.Elem(), below+"NAME."
		case reflect.Slice:
			elem = elem.Elem()
		}
		if elem.Kind() == reflect.Struct && elem.Field(0).Tag.Get("yaml") != "" {
			keys(b, below, elem, own, seen)
		}
	}
}

// value says what is written at a key.
func value(f reflect.StructField) string {
	if enum := f.Tag.Get("enum"); enum != "" {
		return strings.ReplaceAll(enum, ",", ", ")
	}
	switch reflect.Zero(f.Type).Interface().(type) {
	case experiment.Bytes:
		return "size, `800B`, `8GiB`"
	case experiment.Rate:
		return "size a second, `30MiB/s`"
	case experiment.BitRate:
		return "`100mbit`, `1gbit`"
	case experiment.Duration:
		return "time, `500ms`, `30s`, `5m`"
	case experiment.Count:
		return "number, or number per " + strings.ReplaceAll(f.Tag.Get("per"), ",", ", ")
	case experiment.SendRate:
		return "number, or `max`"
	case map[string]string:
		return "Kafka's names"
	case []string:
		return "list"
	case bool:
		return "true, false"
	case int, uint64, float64:
		return "number"
	case string:
		return "text"
	}
	return ""
}
