// Package tool finds the programs that infra's engines drive, terraform or
// tofu, and pulumi, and uses none that has not answered with a version that
// will do. It installs nothing: `make tools` builds those that are missing.
package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Env is the environment variable whose value [Terraform] takes as named.
const Env = "KRIG_TERRAFORM"

// Product is whose program it is; a name on PATH does not tell.
type Product string

// The products.
const (
	TerraformCLI Product = "terraform"
	OpenTofu     Product = "opentofu"
	PulumiCLI    Product = "pulumi"
)

// Program is one that answered.
type Program struct {
	Path    string // absolute
	Product Product
	Version string   // without a v: 1.12.6, 1.6.0-alpha3
	Root    string   // Path is Root/bin/NAME, of what `make tools` built; "" for others
	Notes   []string // for the log: which were passed over and why, what this one warned of
}

// Terraform finds a terraform from 1.5 or a tofu from 1.6 on. Where named is
// set ([Env]) it is that program or an error. Else it is the first that will do
// of tofu on PATH, terraform on PATH and the tofu that `make tools` built: tofu
// before terraform, because krig's own tests run with it.
func Terraform(ctx context.Context, named string) (Program, error) {
	s := terraforms()
	if named == "" {
		return s.find(ctx)
	}
	path, err := exec.LookPath(named)
	if err != nil {
		return Program{}, fmt.Errorf("%s: %w", Env, err)
	}
	p, err := s.ask(ctx, candidate{path: path})
	if err != nil {
		return Program{}, fmt.Errorf("%s: %w", Env, err)
	}
	return p, nil
}

// Pulumi finds pulumi on PATH, else the one that `make tools` built, from 3.130
// on: the automation API has calls that older ones refuse.
func Pulumi(ctx context.Context) (Program, error) {
	return pulumis().find(ctx)
}

// A search is what tells the search for one kind of program from another.
type search struct {
	names []string // on PATH, the preferred first
	built string   // the one that `make tools` builds
	least map[Product]string
	env   []string // for the question alone
	read  func(name, out string) (answer, error)
	none  string // what to do where none is found
	limit time.Duration
}

// answerLimit is far more than a program needs that works: the slowest takes
// half a second on a busy machine.
const answerLimit = 10 * time.Second

func terraforms() search {
	return search{
		names: []string{"tofu", "terraform"},
		built: "tofu",
		least: map[Product]string{TerraformCLI: "1.5.0", OpenTofu: "1.6.0"},
		env:   []string{"CHECKPOINT_DISABLE=1", "TF_LOG="}, // no call home, no log among the words
		read:  readTerraform,
		none:  "no terraform and no tofu: `make tools` builds tofu, or install terraform 1.5 or tofu 1.6, or later",
		limit: answerLimit,
	}
}

func pulumis() search {
	return search{
		names: []string{"pulumi"},
		built: "pulumi",
		least: map[Product]string{PulumiCLI: "3.130.0"},
		env:   []string{"PULUMI_SKIP_UPDATE_CHECK=true", "PULUMI_HOME=/dev/null"}, // no log file in the user's home
		read:  readPulumi,
		none:  "no pulumi: `make tools` builds it, or install 3.130 or later",
		limit: answerLimit,
	}
}

// A candidate is a program that has not been asked yet.
type candidate struct {
	path    string
	root    string // above bin/, of what was built
	version string // that it must have; "" for any
}

// find asks one candidate after the other, up to the first that will do.
func (s search) find(ctx context.Context) (Program, error) {
	all, passed := s.candidates()
	for _, c := range all {
		p, err := s.ask(ctx, c)
		if err == nil {
			p.Notes = append(notes(passed), p.Notes...)
			return p, nil
		}
		if ctx.Err() != nil {
			return Program{}, err
		}
		passed = append(passed, err)
	}
	err := errors.New(s.none)
	for _, p := range passed {
		err = fmt.Errorf("%w; passed over: %w", err, p)
	}
	return Program{}, err
}

func notes(passed []error) []string {
	var out []string
	for _, err := range passed {
		out = append(out, "passed over: "+err.Error())
	}
	return out
}

// candidates are those on PATH, then those built, and why one was none.
func (s search) candidates() ([]candidate, []error) {
	var all []candidate
	var passed []error
	for _, name := range s.names {
		path, err := exec.LookPath(name)
		switch {
		case err == nil:
			all = append(all, candidate{path: path})
		case !errors.Is(err, exec.ErrNotFound):
			passed = append(passed, err)
		}
	}
	built, err := builds(s.built)
	if err != nil {
		passed = append(passed, err)
	}
	return append(all, built...), passed
}

// ask runs one program and tells whether it will do.
func (s search) ask(ctx context.Context, c candidate) (Program, error) {
	path, err := filepath.Abs(c.path)
	if err != nil {
		return Program{}, err
	}
	out, complaint, err := run(ctx, s.limit, s.env, path)
	if err != nil {
		return Program{}, fmt.Errorf("%s cannot run: %w", path, err)
	}
	a, err := s.read(filepath.Base(path), out)
	if err != nil {
		return Program{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := s.accept(a, c); err != nil {
		return Program{}, fmt.Errorf("%s is %s %s: %w", path, a.product, a.version, err)
	}
	p := Program{Path: path, Product: a.product, Version: a.version, Root: c.root}
	for _, words := range []string{complaint, a.before} {
		if words = plain(words); words != "" {
			p.Notes = append(p.Notes, path+": "+words)
		}
	}
	return p, nil
}

func (s search) accept(a answer, c candidate) error {
	if c.version != "" && a.version != c.version {
		return fmt.Errorf("built as %s: run `make tools` again", c.version)
	}
	if least := s.least[a.product]; older(a.version, least) {
		return fmt.Errorf("too old, at least %s is needed", least)
	}
	return nil
}

// Dir is where `make tools` puts what it builds: KRIG_TOOLS_DIR, or
// ~/.cache/krig/tools.
func Dir() (string, error) {
	if d := os.Getenv("KRIG_TOOLS_DIR"); d != "" {
		return filepath.Abs(d)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding what `make tools` built: %w: set KRIG_TOOLS_DIR", err)
	}
	return filepath.Join(home, ".cache", "krig", "tools"), nil
}
