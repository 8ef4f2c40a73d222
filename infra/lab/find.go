package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"krig/internal/rundir"
)

// A Thing of the lab's that was found standing.
type Thing struct {
	Kind  string
	Ref   string // name, path, device; of a process its rundir.Owner
	Label Label
}

// Find looks on this machine itself for what carries the label of a run, or of
// any run when run is "", and of the scope. It reads no run directory. The
// order is the one in which things must be removed.
func Find(ctx context.Context, run, scope string) ([]Thing, error) {
	var s search
	err := errors.Join(s.folders(), s.loops(), s.lxcfs())
	s.processes()
	if _, lerr := exec.LookPath("podman"); lerr == nil {
		err = errors.Join(err, s.podman(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("looking for what the lab left: %w", err)
	}
	return s.mine(run, scope), nil
}

// A search gathers things, and the labels that folders give to things without one.
type search struct {
	found   []Thing
	folder  map[string]Label // by run
	visited map[string]bool  // data folders
}

func (s *search) add(kind, ref string, l Label) { s.found = append(s.found, Thing{kind, ref, l}) }

// folders looks through the data folder of this process's environment.
func (s *search) folders() error {
	s.folder, s.visited = map[string]Label{}, map[string]bool{}
	dir, err := Dir()
	if err != nil {
		return err
	}
	return s.visit(dir)
}

// visit looks through one data folder, once.
func (s *search) visit(labDir string) error {
	if s.visited[labDir] {
		return nil
	}
	s.visited[labDir] = true
	dirs, err := folders(labDir)
	for _, d := range dirs {
		l, _ := folderLabel(d)
		s.add(KindFolder, d, l)
		if _, have := s.folder[l.Run]; !have || l.Owner != "" {
			s.folder[l.Run] = l
		}
	}
	return err
}

// loops finds disks by their backing files, and the rules on their devices.
// They lead to data folders that the environment does not name.
func (s *search) loops() error {
	all, err := loops()
	if err != nil {
		return err
	}
	for device, file := range all {
		l, ok := folderLabel(filepath.Dir(file))
		if !ok || !strings.HasPrefix(filepath.Base(file), "krig-"+l.Run+"-") {
			continue
		}
		if number, err := deviceNumber(device); err == nil && throttled(number) {
			s.add(KindThrottle, device, l)
		}
		s.add(KindLoop, file, l)
		err = errors.Join(err, s.visit(filepath.Dir(filepath.Dir(file))))
	}
	return err
}

func (s *search) lxcfs() error {
	mounts, err := lxcfsMounts()
	for _, m := range mounts {
		l, _ := folderLabel(filepath.Dir(m))
		s.add(KindLxcfs, m, l)
		err = errors.Join(err, s.visit(filepath.Dir(filepath.Dir(m))))
	}
	return err
}

func (s *search) processes() {
	for _, p := range makers() {
		s.add(KindProcess, p.owner.String(), labelFromArgs(p.argv))
	}
}

func (s *search) podman(ctx context.Context) error {
	containers, err := listContainers(ctx)
	for _, c := range containers {
		if len(c.Names) > 0 {
			s.add(KindContainer, c.Names[0], labelFrom(c.Labels))
		}
	}
	networks, nerr := listNetworks(ctx)
	for _, n := range networks {
		if n.Labels["krig-run"] != "" {
			s.add(KindNetwork, n.Name, labelFrom(n.Labels))
		}
	}
	return errors.Join(err, nerr)
}

// mine gives every thing of a run the label in the run's folder, which is
// brought up to date when another krig takes the run over, and keeps those
// that are asked for.
func (s *search) mine(run, scope string) []Thing {
	var out []Thing
	for _, t := range s.found {
		if l, ok := s.folder[t.Label.Run]; ok && l.Owner != "" {
			t.Label = l
		}
		if (run == "" || t.Label.Run == run) && t.Label.Scope == scope {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b Thing) int { return rank(a.Kind) - rank(b.Kind) })
	return out
}

// rank is the order of removal: what makes things first; rules while their
// device is there, and before the container, whose last write-back would else
// take its time; then what uses the others.
func rank(kind string) int {
	return slices.Index([]string{KindProcess, KindThrottle, KindContainer, KindNetwork, KindLxcfs, KindLoop, KindFolder}, kind)
}

// Remove removes things in the order that they need. One that cannot be
// removed does not keep the rest. What a process made before it could be ended
// is removed with it.
func Remove(ctx context.Context, things []Thing) error {
	things = slices.Clone(things)
	slices.SortStableFunc(things, func(a, b Thing) int { return rank(a.Kind) - rank(b.Kind) })
	var errs []error
	for len(things) > 0 && things[0].Kind == KindProcess {
		p := things[0]
		errs = append(errs, remove(ctx, p))
		more, err := Find(ctx, p.Label.Run, p.Label.Scope)
		errs = append(errs, err)
		things = join(things[1:], more)
	}
	for len(things) > 0 {
		n := 1
		if things[0].Kind == KindContainer { // podman removes several side by side
			for n < len(things) && things[n].Kind == KindContainer {
				n++
			}
		}
		errs = append(errs, removeAlike(ctx, things[:n]))
		things = things[n:]
	}
	return errors.Join(errs...)
}

// removeAlike removes one thing, or several containers.
func removeAlike(ctx context.Context, things []Thing) error {
	if len(things) == 1 {
		return remove(ctx, things[0])
	}
	names := make([]string, len(things))
	for i, t := range things {
		names[i] = t.Ref
	}
	if err := removeContainers(ctx, names...); err != nil {
		return fmt.Errorf("removing containers: %w", err)
	}
	return nil
}

// join adds what is new, in the order of removal.
func join(things, more []Thing) []Thing {
	for _, m := range more {
		if m.Kind != KindProcess && !slices.ContainsFunc(things, func(t Thing) bool { return t.Kind == m.Kind && t.Ref == m.Ref }) {
			things = append(things, m)
		}
	}
	slices.SortStableFunc(things, func(a, b Thing) int { return rank(a.Kind) - rank(b.Kind) })
	return things
}

func remove(ctx context.Context, t Thing) error {
	if err := removeKind(ctx, t); err != nil {
		return fmt.Errorf("removing %s %s: %w", t.Kind, t.Ref, err)
	}
	return nil
}

func removeKind(ctx context.Context, t Thing) error {
	switch t.Kind {
	case KindProcess:
		o, err := rundir.ParseOwner(t.Ref)
		if err != nil {
			return err
		}
		return finish(ctx, process{owner: o})
	case KindThrottle:
		return unthrottle(t.Ref)
	case KindContainer:
		return removeContainers(ctx, t.Ref)
	case KindNetwork:
		return removeNetwork(ctx, t.Ref)
	case KindLxcfs:
		return endLxcfs(ctx, t.Ref)
	case KindLoop:
		return release(ctx, t.Ref)
	case KindFolder:
		return removeFolder(t.Ref, t.Label)
	}
	return fmt.Errorf("nothing of the lab's is called so")
}

// removeNetwork removes a network; one that is not there counts as removed.
func removeNetwork(ctx context.Context, name string) error {
	all, err := listNetworks(ctx)
	if err != nil || !slices.ContainsFunc(all, func(n network) bool { return n.Name == name }) {
		return err
	}
	_, err = tool(ctx, "podman", "network", "rm", "--force", name)
	return err
}

// Makes tells whether a kind of ledger entry is one of the lab's.
func Makes(kind string) bool { return rank(kind) >= 0 }

// EndChild ends a process that the ledger names by its identity and what it
// is. podman's commands are let come to their end.
func EndChild(ctx context.Context, ref string) error {
	who, what, _ := strings.Cut(ref, " ")
	o, err := rundir.ParseOwner(who)
	if err != nil {
		return err
	}
	p := process{owner: o}
	if strings.HasPrefix(what, "podman ") {
		return finish(ctx, p)
	}
	if err := end(ctx, p, syscall.SIGTERM); err == nil {
		return nil
	}
	return end(ctx, p, syscall.SIGKILL)
}

// Closed does what is left to do for a thing of the ledger that Find does not
// see: the rule of a device that no longer belongs to the run, unless the
// device has another file by now; and a folder in another data folder than
// this process's.
func Closed(kind, ref string) error {
	if l, ok := folderLabel(ref); kind == KindFolder && ok && exists(ref) {
		return removeFolder(ref, l)
	}
	if kind != KindThrottle {
		return nil
	}
	all, err := loops()
	if err != nil || all[ref] != "" {
		return err
	}
	return unthrottle(ref)
}

// Forget removes the lab's keys and records from the run directory, once nothing stands.
func Forget(run *rundir.Run) error { return os.RemoveAll(run.Path("infra", "lab")) }
