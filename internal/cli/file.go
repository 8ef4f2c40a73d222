package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"krig/internal/experiment"
	"krig/internal/pipeline"
)

// initCmd writes an experiment to start from.
func (a *app) initCmd() *cobra.Command {
	return &cobra.Command{
		Use:       "init TEMPLATE [FILE]",
		GroupID:   groupFile,
		Short:     "Write a commented experiment to start from",
		Long:      "Write a commented experiment to FILE, or to standard output. A FILE that is\nthere already is left alone. TEMPLATE is lab: hosts on this machine; or module:\nhosts that your own Terraform makes, with a module to start from beside FILE.",
		Example:   "  krig init lab my.yaml",
		Args:      args(takes(1, 2)),
		ValidArgs: []string{"lab", "module"},
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := experiment.Template(args[0])
			if err != nil {
				return usage(err)
			}
			if len(args) == 1 {
				_, err = a.Out.Write(text)
				return err
			}
			if err := a.writeNew(args[1], text); err != nil {
				return err
			}
			return a.writeBeside(args[0], filepath.Dir(args[1]))
		},
	}
}

// writeBeside writes the files that a template names; those that are there
// already are left alone.
func (a *app) writeBeside(template, dir string) error {
	files, err := experiment.TemplateFiles(template)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil {
			a.say("%s is there already and is left alone", path)
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return err
		}
		a.say("wrote %s", path)
	}
	return nil
}

// writeNew writes a file that must not be there yet.
func (a *app) writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return hint(usage(fmt.Errorf("%s is there already", file)), "name another file, or remove it first")
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	a.say("wrote %s; next: krig plan %s", file, file)
	return nil
}

// checkCmd validates an experiment.
func (a *app) checkCmd() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:     "check FILE",
		GroupID: groupFile,
		Short:   "Say what is wrong with an experiment",
		Long: `Check an experiment: every error at once, each with its file, line, column, key
and what was expected. Nothing is contacted; no secret or credential is needed.`,
		Args: args(takes(1, 1)),
		RunE: func(_ *cobra.Command, args []string) error {
			_, plan, err := pipeline.Check(args[0], set...)
			if err != nil {
				return err
			}
			a.say("%s: nothing wrong; %s, %s", args[0], count(len(plan.Cells), "cell"), count(len(plan.Visits), "repeat"))
			return nil
		},
	}
	setFlag(cmd, &set)
	return cmd
}

// setFlag gives a command that reads an experiment the flag that changes it.
func setFlag(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVar(set, "set", nil, "change one value of the experiment: `PATH=VALUE`, such as repeat=3; may be given again")
}

func yesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask, also where money or other people's machines are at stake (the lab never asks)")
}

// schemaCmd prints the JSON Schema of experiments.
func (a *app) schemaCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		GroupID: groupFile,
		Short:   "Print the JSON Schema of experiment files",
		Long:    "Print the JSON Schema of experiment files. Editors complete and check from it.",
		Example: "  krig schema > krig.schema.json\n  # and as the first line of an experiment:\n  # yaml-language-server: $schema=krig.schema.json",
		Args:    args(takes(0, 0)),
		RunE: func(*cobra.Command, []string) error {
			schema, err := experiment.Schema()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, strings.TrimSpace(string(schema)))
			return err
		},
	}
}
