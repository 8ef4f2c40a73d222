// Package terraform is the engine that keeps a rig as a Terraform stack, by
// terraform or tofu. The modules in its folders are krig's own, usable by hand.
//
// It starts the program by infra/child and not through a library that does:
// what is started must be in the ledger before it makes anything, must get one
// interrupt and no more, and must neither die with krig nor depend on a pipe
// that krig reads, or what it made would be in no state.
package terraform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"krig/infra/child"
	"krig/infra/stack"
	"krig/infra/tool"
	"krig/internal/rundir"
)

const (
	planFile  = "krig.tfplan"
	varsFile  = "krig.auto.tfvars.json"
	hostsName = "hosts" // the output
	lockLimit = "60s"   // how long another's lock of the state is waited for
	grace     = 5 * time.Minute
	longest   = 2 * time.Hour // of one command, where the caller has no limit
)

// keep is what a later process must know to work on a stack.
type keep struct {
	Workspace string            `json:"workspace"`
	Env       map[string]string `json:"env"`
	Product   tool.Product      `json:"product"` // which program made it, for the record
	Version   string            `json:"version"`
}

// folder is a stack's directory in the run: a copy of the module with its
// variables, state and plan, and what init fetched.
type folder struct {
	run *rundir.Run
	rig string
	dir string
	keep
}

// Open opens the stack of a rig, made or not; it starts nothing.
func Open(run *rundir.Run, rig string) (stack.Stack, error) {
	f := &folder{run: run, rig: rig, dir: run.Path("infra", "terraform", rig)}
	if err := f.load(); err != nil {
		return nil, fmt.Errorf("opening the stack of rig %s: %w", rig, err)
	}
	return f, nil
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }
func (f *folder) module() string          { return f.path("module") }

// begun tells whether init has been done: before it nothing can have been made.
func (f *folder) begun() bool {
	_, err := os.Stat(f.path("begun"))
	return err == nil
}

func (f *folder) load() error {
	data, err := os.ReadFile(f.path("stack.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &f.keep)
	}
	return err
}

// Apply implements [stack.Stack].
func (f *folder) Apply(ctx context.Context, in stack.Input) (json.RawMessage, error) {
	p, err := f.write(ctx, in)
	if err != nil {
		return nil, err
	}
	if err := f.init(ctx, p); err != nil {
		return nil, err
	}
	plan := []string{"plan", "-json", "-input=false", "-lock-timeout=" + lockLimit, "-out=" + planFile}
	if _, err := f.logged(ctx, p, plan...); err != nil {
		return nil, err
	}
	apply := []string{"apply", "-json", "-input=false", "-auto-approve", "-lock-timeout=" + lockLimit, parallel, planFile}
	hosts, err := f.logged(ctx, p, apply...)
	if err != nil || hosts != nil {
		return hosts, err
	}
	return f.output(ctx, p)
}

// output asks for the hosts where apply did not show them, as of a sensitive
// output. Warnings, of the user's own configuration, may stand before the JSON.
func (f *folder) output(ctx context.Context, p tool.Program) (json.RawMessage, error) {
	out, err := f.command(p, "output", "-json", hostsName).Run(ctx)
	if err != nil {
		return nil, failure("reading the output "+hostsName, nil, err)
	}
	for lines := out; ; {
		if json.Valid([]byte(lines)) {
			return json.RawMessage(lines), nil
		}
		_, rest, more := strings.Cut(lines, "\n")
		if !more {
			return nil, fmt.Errorf("the output %s is no JSON: %q", hostsName, out)
		}
		lines = rest
	}
}

// parallel is how many hosts are made at once. The lab gains nothing by more,
// and clouds limit how many are asked for.
const parallel = "-parallelism=4"

// write copies the module, once, and writes down all that it is given.
func (f *folder) write(ctx context.Context, in stack.Input) (tool.Program, error) {
	p, err := tool.Terraform(ctx, os.Getenv(tool.Env))
	if err != nil {
		return p, err
	}
	f.keep = keep{Workspace: in.Workspace, Env: in.Env, Product: p.Product, Version: p.Version}
	vars, err := json.MarshalIndent(in.Vars, "", "  ")
	if err != nil {
		return p, fmt.Errorf("the variables of rig %s: %w", f.rig, err)
	}
	record, err := json.MarshalIndent(f.keep, "", "  ")
	if err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err == nil {
		err = f.copyModule(in.Module)
	}
	if err == nil {
		err = os.WriteFile(f.path("stack.json"), record, 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(f.module(), varsFile), vars, 0o600)
	}
	if err != nil {
		return p, fmt.Errorf("writing the stack of rig %s: %w", f.rig, err)
	}
	return p, nil
}

// copyModule copies a module whole or not at all.
func (f *folder) copyModule(from string) error {
	if _, err := os.Stat(f.module()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	part := f.module() + ".part"
	err := os.RemoveAll(part)
	if err == nil {
		err = os.CopyFS(part, os.DirFS(from))
	}
	if err == nil {
		err = os.Rename(part, f.module())
	}
	return err
}

// init fetches what the module needs and chooses its workspace.
func (f *folder) init(ctx context.Context, p tool.Program) error {
	if f.begun() {
		return nil
	}
	f.say("%s %s: preparing the module", p.Product, p.Version)
	for _, note := range p.Notes {
		f.say("%s", note)
	}
	if _, err := f.command(p, "init", "-input=false", "-no-color").Run(ctx); err != nil {
		return failure("init", nil, err)
	}
	if f.Workspace != "" {
		if _, err := f.command(p, "workspace", "select", "-no-color", "-or-create", f.Workspace).Run(ctx); err != nil {
			return failure("choosing the workspace", nil, err)
		}
	}
	return os.WriteFile(f.path("begun"), nil, 0o600)
}

// Destroy implements [stack.Stack]. The lock of a state in the run directory
// ends with the program that held it; one of the user's own back end is broken
// only when it was a dead program's of this very run.
func (f *folder) Destroy(ctx context.Context) error {
	if !f.begun() {
		return nil
	}
	p, err := tool.Terraform(ctx, os.Getenv(tool.Env))
	if err != nil {
		return fmt.Errorf("destroying the stack of rig %s needs the program that made it: %w", f.rig, err)
	}
	destroy := []string{"destroy", "-json", "-input=false", "-auto-approve", "-lock-timeout=" + lockLimit, parallel}
	_, err = f.logged(ctx, p, destroy...)
	if lock := lockOf(err); lock != nil && f.ours(*lock) {
		f.say("breaking the lock %s that a killed %s of this run left", lock.ID, p.Product)
		if _, err := f.command(p, "force-unlock", "-force", lock.ID).Run(ctx); err != nil {
			return failure("breaking the lock", nil, err)
		}
		_, err = f.logged(ctx, p, destroy...)
	}
	if err != nil || f.Workspace == "" {
		return err
	}
	return f.dropWorkspace(ctx, p)
}

// dropWorkspace removes the run's workspace from the user's back end.
func (f *folder) dropWorkspace(ctx context.Context, p tool.Program) error {
	for _, args := range [][]string{{"workspace", "select", "default"}, {"workspace", "delete", f.Workspace}} {
		if _, err := f.command(p, args...).Run(ctx); err != nil {
			return failure("removing the workspace "+f.Workspace, nil, err)
		}
	}
	return os.Remove(f.path("begun"))
}

// List implements [stack.Stack].
func (f *folder) List(ctx context.Context) ([]string, error) {
	if !f.begun() {
		return nil, nil
	}
	p, err := tool.Terraform(ctx, os.Getenv(tool.Env))
	if err != nil {
		return nil, err
	}
	out, err := f.command(p, "state", "list").Run(ctx)
	if err != nil && strings.Contains(err.Error(), "No state file was found") {
		return nil, nil // nothing was ever made
	}
	if err != nil {
		return nil, failure("listing the state", nil, err)
	}
	var known []string
	for line := range strings.Lines(out) { // warnings may stand among them
		if line = strings.TrimSpace(line); address.MatchString(line) {
			known = append(known, line)
		}
	}
	return known, nil
}

// address is that of a resource: module.a["x y"].data.type.name[0].
var address = regexp.MustCompile(`^(module\.[\w-]+(\[[^\]]*\])?\.)*(data\.)?[a-z0-9_]+\.[\w-]+(\[.*\])?$`)

// Scrub implements [stack.Stack]: of the directory only stack.json stays.
func (f *folder) Scrub() error {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != "stack.json" {
			errs = append(errs, os.RemoveAll(f.path(e.Name())))
		}
	}
	return errors.Join(errs...)
}

// logged runs a command that writes JSON lines: what happens is reported, and
// what went wrong is in the error. It returns the output of hosts, if it was shown.
func (f *folder) logged(ctx context.Context, p tool.Program, args ...string) (json.RawMessage, error) {
	l := &log{say: f.say, planned: args[0] == "apply"}
	c := f.command(p, args...)
	c.Lines = l.line
	c.Limit = remaining(ctx) + grace
	_, err := c.Run(ctx)
	if err != nil {
		return nil, failure(args[0], l.failures, err)
	}
	return l.hosts, nil
}

// remaining is how long ctx still lasts.
func remaining(ctx context.Context) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return time.Until(at)
	}
	return longest
}

func (f *folder) command(p tool.Program, args ...string) child.Command {
	env := map[string]string{
		"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1", "TF_CLI_ARGS": "", "TF_WORKSPACE": "",
		"TF_DATA_DIR": f.path("data"),
	}
	maps.Copy(env, f.Env)
	c := child.Command{Argv: append([]string{p.Path}, args...), Dir: f.module(), Limit: grace, Ledger: f.run.Ledger, Interrupt: true}
	for _, k := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, k+"="+env[k])
	}
	return c
}

func (f *folder) say(format string, args ...any) {
	f.run.Report(rundir.Event{Stage: "infra", Message: "rig " + f.rig + ": " + fmt.Sprintf(format, args...)})
}
