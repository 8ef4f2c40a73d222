package module

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"krig/infra/child"
	"krig/infra/tool"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// The variables that krig passes by itself.
const (
	tagsVariable  = "krig_tags"  // map(string), always: what everything must carry
	hostsVariable = "krig_hosts" // map(number), where it is declared: hosts by pool
)

const readme = "see infra/module/README.md"

// Refuse reads the module's files and says what is missing in them, or in what
// the experiment passes.
func (Provider) Refuse(c *experiment.Cell) []experiment.Problem {
	m := c.Rig.Module
	at := "rigs." + c.RigName + ".module"
	d, err := inspect(m.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil // the experiment's own check says so
	case errors.As(err, new(noModule)):
		return []experiment.Problem{{Path: at + ".path", Reason: err.Error(), Expected: "a directory with a Terraform module at its top"}}
	case err != nil:
		return []experiment.Problem{{Path: at + ".path", Reason: "the module cannot be read: " + err.Error(), Expected: "files that terraform validate accepts"}}
	}
	return append(d.contract(at), d.passed(at, m.Variables)...)
}

// contract is what a module must have to be krig's.
func (d *declared) contract(at string) []experiment.Problem {
	var out []experiment.Problem
	path := at + ".path"
	if _, ok := d.variables[tagsVariable]; !ok {
		out = append(out, experiment.Problem{Path: path, Reason: "the module declares no variable " + tagsVariable,
			Expected: `variable "` + tagsVariable + `" { type = map(string) }, and its tags on everything; ` + readme})
	}
	if !d.outputs["hosts"] {
		out = append(out, experiment.Problem{Path: path, Reason: "the module has no output hosts", Expected: `output "hosts", by which krig knows the hosts; ` + readme})
	}
	if d.workspace != "" {
		out = append(out, experiment.Problem{Path: path, Reason: fmt.Sprintf("the module's back end %s names the one workspace %s", d.backend, d.workspace),
			Expected: "workspaces by tags or a prefix: each run has one of its own"})
	}
	for _, source := range d.outside {
		out = append(out, experiment.Problem{Path: path, Reason: fmt.Sprintf("the module uses %s, which lies outside of its directory, and krig copies the directory alone", source),
			Expected: "a source inside of it, or one of a registry or a repository"})
	}
	return out
}

// passed compares what the experiment passes with what the module declares.
func (d *declared) passed(at string, values experiment.Values) []experiment.Problem {
	var out []experiment.Problem
	for name := range values {
		switch v, ok := d.variables[name]; {
		case v.auto != "": // which of the two counts hangs on the names of files
			out = append(out, experiment.Problem{Path: at + ".variables." + name, Reason: "the module's " + v.auto + " gives it a value too", Expected: "a value in one place"})
		case !ok:
			expected := "a variable of the module's: " + cmp.Or(strings.Join(d.open(), ", "), "it has none")
			if near := experiment.Nearest(name, d.open()); near != "" {
				expected = near
			}
			out = append(out, experiment.Problem{Path: at + ".variables." + name, Reason: "the module declares no variable " + name, Expected: expected})
		}
	}
	slices.SortFunc(out, func(a, b experiment.Problem) int { return strings.Compare(a.Path, b.Path) })
	for _, name := range d.open() {
		if _, ok := values[name]; !ok && !d.variables[name].set {
			out = append(out, experiment.Problem{Path: at, Reason: fmt.Sprintf("the module's variable %s has no default and gets no value", name), Expected: "variables: {" + name + ": VALUE}"})
		}
	}
	return out
}

// open are the variables that an experiment may pass.
func (d *declared) open() []string {
	return slices.DeleteFunc(d.names(), func(name string) bool { return name == tagsVariable || name == hostsVariable })
}

// Check looks for a program that applies the module, for the secrets that the
// cells refer to, and for a key to log in with.
func (Provider) Check(ctx context.Context, cells []*experiment.Cell) []child.Lack {
	var out []child.Lack
	if _, err := tool.Terraform(ctx, os.Getenv(tool.Env)); err != nil {
		out = append(out, child.Lack{What: err.Error(), Remedy: "install terraform or OpenTofu, or make tools, which builds tofu"})
	}
	said := map[string]bool{}
	for _, c := range cells {
		at := "rigs." + c.RigName + ".module"
		lacks := append(secretsMissing(at, c.Rig.Module.Variables), loginMissing(at, c.Rig.Module.SSH)...)
		if dir := c.Rig.Module.Path; !said[dir] {
			said[dir] = true
			lacks = append(lacks, uncopied(at, dir)...)
		}
		for _, l := range lacks {
			if !said[l.Path+l.What] {
				said[l.Path+l.What] = true
				out = append(out, l)
			}
		}
	}
	return out
}

// uncopied is what keeps a run from taking its copy of the module.
func uncopied(at, dir string) []child.Lack {
	if _, err := rundir.TreeSum(dir); err != nil {
		return []child.Lack{{What: err.Error(), Remedy: "see that all of the directory can be copied", Path: at + ".path"}}
	}
	return nil
}

func secretsMissing(at string, values experiment.Values) []child.Lack {
	var out []child.Lack
	for name, v := range values {
		s, ok := v.Secret()
		if !ok {
			continue
		}
		if _, err := read(s); err != nil {
			out = append(out, child.Lack{What: err.Error(), Remedy: "set it before krig run; what is no secret is written as it is", Path: at + ".variables." + name})
		}
	}
	slices.SortFunc(out, func(a, b child.Lack) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// loginMissing is what keeps krig from logging in with what ssh names.
func loginMissing(at string, s experiment.ModuleSSH) []child.Lack {
	var out []child.Lack
	if s.Agent && os.Getenv("SSH_AUTH_SOCK") == "" {
		out = append(out, child.Lack{What: "no ssh-agent is there: SSH_AUTH_SOCK is not set", Remedy: "eval $(ssh-agent) && ssh-add", Path: at + ".ssh.agent"})
	}
	if s.KeyFile == "" {
		return out
	}
	text, err := os.ReadFile(s.KeyFile)
	if err == nil {
		_, err = ssh.ParsePrivateKey(text)
	}
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		out = append(out, child.Lack{What: s.KeyFile + " is protected by a passphrase", Remedy: "ssh-add " + s.KeyFile + ", and ssh: {agent: true} in its place", Path: at + ".ssh.key_file"})
	case err != nil:
		out = append(out, child.Lack{What: "the private key cannot be read: " + err.Error(), Remedy: "ssh-keygen -t ed25519 -N '' -f " + s.KeyFile + " makes one", Path: at + ".ssh.key_file"})
	}
	return out
}
