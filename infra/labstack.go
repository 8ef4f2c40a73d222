package infra

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"krig/infra/lab"
	"krig/infra/stack"
	"krig/infra/tool"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// labModule is the lab's Terraform module.
//
//go:embed terraform/lab/*.tf terraform/lab/README.md
var labModule embed.FS

// programEnv names the environment variable that says which krig the lab's
// module calls, where this process is none.
const programEnv = "KRIG_PROGRAM"

// labStack asks for lab hosts through a stack: a module whose hosts krig makes,
// called back as krig lab-host.
type labStack struct{}

func (labStack) Name() string { return lab.Provider }

func (labStack) Refuse(c *experiment.Cell) []experiment.Problem { return labDirect{}.Refuse(c) }

// Check asks what the lab needs, and for a program that applies the module.
func (labStack) Check(ctx context.Context, cells []*experiment.Cell) []Lack {
	out := labDirect{}.Check(ctx, cells)
	if _, err := tool.Terraform(ctx, os.Getenv(tool.Env)); err != nil {
		out = append(out, Lack{What: err.Error(), Remedy: "make tools builds tofu; engine: direct needs none"})
	}
	return out
}

// Input opens the lab: what hosts share, and what they must not see of this
// machine, is this process's to tell. The module makes the hosts alone.
func (s labStack) Input(ctx context.Context, run *rundir.Run, c *experiment.Cell, label rundir.Label) (stack.Input, error) {
	want, err := s.open(ctx, run, c, label)
	if err != nil {
		return stack.Input{}, err
	}
	module := run.Path("infra", "modules", lab.Provider)
	if err := writeModule(labModule, filepath.Join("terraform", lab.Provider), module); err != nil {
		return stack.Input{}, err
	}
	krig, err := program()
	if err != nil {
		return stack.Input{}, err
	}
	hosts := make(map[string]any, len(want))
	for _, h := range want {
		hosts[h.Name] = map[string]any{"cpus": h.CPUs, "memory": h.Memory, "link_rate": h.LinkRate, "disk": h.Disk, "remake": h.Remake}
	}
	labDir, err := lab.Dir()
	return stack.Input{
		Module: module,
		Vars:   map[string]any{"hosts": hosts, "rig": c.RigName, "krig": krig, "run": run.Dir},
		Place:  rundir.Place{Provider: lab.Provider},
		Env:    map[string]string{"KRIG_LAB_DIR": labDir, "KRIG_SCOPE": scope(), lab.RunEnv: run.Dir},
	}, err
}

// OpenLab opens the lab of a run that nobody's krig lives for, because a user
// applies the lab's module by hand: it is kept until its expiry. Opened again it
// is kept until the new one.
func OpenLab(ctx context.Context, run *rundir.Run, expiry time.Time) error {
	if err := noteOnce(run, rundir.KindPlace, rundir.Place{Provider: lab.Provider}.String()); err != nil {
		return err
	}
	_, err := lab.Open(ctx, run, Label{Run: run.Short, Owner: rundir.Self().String(), Hold: rundir.HoldKept, Expiry: expiry, Scope: scope()})
	return err
}

// open opens the lab and returns the hosts to ask for, for whose disks there is room.
func (labStack) open(ctx context.Context, run *rundir.Run, c *experiment.Cell, label rundir.Label) ([]lab.Spec, error) {
	if _, err := lab.Open(ctx, run, label); err != nil {
		return nil, err
	}
	l, err := lab.Join(run, lab.Terraform)
	if err != nil {
		return nil, err
	}
	have, err := l.Standing(ctx)
	if err != nil {
		return nil, err
	}
	want, err := l.Remade(specs(c), have)
	if err != nil {
		return nil, err
	}
	_, missing := difference(want, have)
	return want, lab.Room(diskBytes(missing))
}

// recorded are the hosts that the module's processes wrote down.
func recorded(run *rundir.Run, want []lab.Spec) (map[string]lab.Made, error) {
	l, err := lab.Join(run, lab.Terraform)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(want))
	for i, s := range want {
		names[i] = s.Name
	}
	return l.Records(names...)
}

// Hosts are those that the output names, as the run directory describes them:
// the lab knows more of a host than a module tells.
func (labStack) Hosts(_ context.Context, run *rundir.Run, c *experiment.Cell, out json.RawMessage) ([]rundir.Host, error) {
	told, err := stack.Decode(out, c, rundir.SSH{})
	if err != nil {
		return nil, err
	}
	want := specs(c)
	have, err := recorded(run, want)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, s := range want {
		m := have[s.Name]
		s.Remake = m.Spec.Remake
		if m.Spec != s || !m.Host.Same(told[i]) {
			errs = append(errs, fmt.Errorf("host %s does not stand as the lab's module says: krig down %s, and begin again", s.Name, run.Short))
		}
	}
	return hosts(c, have, nil), errors.Join(errs...)
}

func (labStack) Renew(_ context.Context, run *rundir.Run, expiry time.Time) error {
	return lab.Renew(run, expiry)
}

// Limits leave a busy machine ten times what it needs.
func (labStack) Limits() stack.Limits {
	return stack.Limits{Apply: 10 * time.Minute, Destroy: 5 * time.Minute, Boot: time.Minute}
}

// program is the krig that the module calls.
func program() (string, error) {
	if p := os.Getenv(programEnv); p != "" {
		return filepath.Abs(p)
	}
	p, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding krig's own program: %w: name it in %s", err, programEnv)
	}
	return p, nil
}

// writeModule writes an embedded module out.
func writeModule(from fs.FS, root, dir string) error {
	sub, err := fs.Sub(from, root)
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err == nil {
		err = os.CopyFS(dir, sub)
	}
	if err != nil {
		return fmt.Errorf("writing the lab's module out: %w", err)
	}
	return nil
}
