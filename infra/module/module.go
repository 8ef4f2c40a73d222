// Package module is the provider whose hosts a directory of the user's own
// Terraform makes: what krig asks of such a module, passes to it and reads
// from it. README.md beside it is the contract.
package module

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"krig/infra/stack"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// Name is the provider's in an experiment.
const Name = "module"

// Provider is the [stack.Provider]. Nobody can be asked what of it stands but
// the stack itself.
type Provider struct{}

// Name is module.
func (Provider) Name() string { return Name }

// Limits are those of clouds at their slowest: a module may make anything.
func (Provider) Limits() stack.Limits {
	return stack.Limits{Apply: time.Hour, Destroy: time.Hour, Boot: 10 * time.Minute}
}

// Renew does nothing: what only the module knows, only the module could give
// another time to live, and nothing of krig's goes by the tag meanwhile.
func (Provider) Renew(context.Context, *rundir.Run, time.Time) error { return nil }

// Input is the run's copy of the module with all that it is passed. Secrets are
// read here, and kept in no file but the stack's own.
func (Provider) Input(_ context.Context, run *rundir.Run, c *experiment.Cell, label rundir.Label) (stack.Input, error) {
	m := c.Rig.Module
	if err := run.CopyTree(m.Path); err != nil {
		return stack.Input{}, err
	}
	copied := run.TreeCopy(m.Path)
	d, err := inspect(copied)
	if err != nil {
		return stack.Input{}, fmt.Errorf("reading the module: %w", err)
	}
	vars, err := d.vars(c, label)
	if err != nil {
		return stack.Input{}, err
	}
	in := stack.Input{Module: copied, Vars: vars, Place: rundir.Place{Provider: Name}}
	if d.backend != "" {
		in.Workspace = "krig-" + run.Short + "-" + c.RigName
	}
	return in, nil
}

// vars are the values of the module's variables.
func (d *declared) vars(c *experiment.Cell, label rundir.Label) (map[string]any, error) {
	tags := map[string]string{}
	for _, kv := range label.Tags() {
		if kv[1] != "" { // some clouds have no empty tags
			tags[kv[0]] = kv[1]
		}
	}
	out := map[string]any{tagsVariable: tags}
	if _, ok := d.variables[hostsVariable]; ok {
		out[hostsVariable] = c.Hosts()
	}
	for name, v := range c.Rig.Module.Variables {
		x, err := d.value(name, v)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		out[name] = x
	}
	return out, nil
}

// value is what a variable gets. One that is declared as a string gets numbers
// as they are written: 3.10 stays 3.10.
func (d *declared) value(name string, v experiment.Value) (any, error) {
	if s, ok := v.Secret(); ok {
		return read(s)
	}
	x, err := v.Any()
	if number, ok := x.(json.Number); ok && d.variables[name].kind == "string" {
		return number.String(), err
	}
	return x, err
}

// secretMost bounds what is read of a secret's file: a path may name a device.
const secretMost = 1 << 20

// read reads a secret. A file's last line ends are not part of it.
func read(s experiment.Secret) (string, error) {
	if s.Env != "" {
		v, ok := os.LookupEnv(s.Env)
		if !ok {
			return "", fmt.Errorf("the environment variable %s is not set", s.Env)
		}
		return v, nil
	}
	f, err := os.Open(s.File)
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, secretMost+1))
	if err != nil {
		return "", fmt.Errorf("reading a secret: %w", err)
	}
	if len(text) > secretMost {
		return "", fmt.Errorf("%s has more than %d bytes", s.File, secretMost)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// Hosts are those of the module's output, once they answer with the keys that
// it says.
func (p Provider) Hosts(ctx context.Context, run *rundir.Run, c *experiment.Cell, out json.RawMessage) ([]rundir.Host, error) {
	s := c.Rig.Module.SSH
	hosts, err := stack.Decode(out, c, rundir.SSH{User: s.User, KeyFile: s.KeyFile, Agent: s.Agent})
	if err != nil {
		return nil, fmt.Errorf("the module %s gave what is not krig's contract: %w", c.Rig.Module.Path, err)
	}
	hosts, err = stack.Await(ctx, run, hosts, p.Limits().Boot)
	if err != nil {
		return nil, err
	}
	return hosts, large(hosts, c)
}

// large refuses hosts without the disk that the experiment asks for.
func large(hosts []rundir.Host, c *experiment.Cell) error {
	var errs []error
	for i, place := range c.Placement() {
		want := int64(place.Keys.Disk.Size)
		var have int64
		for _, d := range hosts[i].Disks {
			have += d.Size
		}
		if have < want {
			errs = append(errs, fmt.Errorf("host %s (%s) has %d bytes of data disks, and the experiment's %s.disk.size is %s: let the module attach more, or ask for less",
				place.Name, hosts[i].SSH.Address, have, place.Pool, place.Keys.Disk.Size))
		}
	}
	return errors.Join(errs...)
}
