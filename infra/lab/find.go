package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"krig/infra/child"
	"krig/internal/rundir"
)

// Provider is the lab's name in an experiment and in what is found.
const Provider = "lab"

// Find looks on this machine itself for what the label selects. It reads no
// run directory. The order is the one in which things must be removed. Who is
// not root cannot see what there is, and gets an error that is fs.ErrPermission.
func Find(ctx context.Context, by rundir.Label) ([]rundir.Leftover, error) {
	var s search
	err := errors.Join(s.folders(), s.loops(), s.lxcfs())
	s.processes()
	if _, lerr := exec.LookPath("podman"); lerr == nil {
		err = errors.Join(err, s.podman(ctx))
		if os.Geteuid() != 0 {
			err = fs.ErrPermission // podman shows everybody only their own
		}
	}
	if err != nil {
		return nil, fmt.Errorf("looking for what the lab left: %w", err)
	}
	return s.mine(by), nil
}

// A search gathers things, and the labels that folders give to things without one.
type search struct {
	found   []rundir.Leftover
	folder  map[string]rundir.Label // by run
	visited map[string]bool         // data folders
}

func (s *search) add(kind, ref string, l rundir.Label) {
	s.found = append(s.found, rundir.Leftover{Place: rundir.Place{Provider: Provider}, Kind: kind, Ref: ref, Label: l})
}

// folders looks through the data folder of this process's environment.
func (s *search) folders() error {
	s.folder, s.visited = map[string]rundir.Label{}, map[string]bool{}
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
	for _, m := range makers() {
		s.add(KindProcess, m.Owner.String(), m.label)
	}
}

func (s *search) podman(ctx context.Context) error {
	containers, err := listContainers(ctx)
	for _, c := range containers {
		if len(c.Names) > 0 {
			s.add(KindContainer, c.Names[0], rundir.LabelFrom(c.Labels))
		}
	}
	networks, nerr := listNetworks(ctx)
	for _, n := range networks {
		if n.Labels["krig-run"] != "" {
			s.add(KindNetwork, n.Name, rundir.LabelFrom(n.Labels))
		}
	}
	return errors.Join(err, nerr)
}

// mine gives every thing of a run the label in the run's folder, which is
// brought up to date when another krig takes the run over, and keeps those
// that are asked for.
func (s *search) mine(by rundir.Label) []rundir.Leftover {
	now := time.Now()
	var out []rundir.Leftover
	for _, t := range s.found {
		if l, ok := s.folder[t.Run]; ok && l.Owner != "" {
			t.Label = l
		}
		if by.Selects(t.Label) {
			t.Alive, t.May = t.OwnerAlive(), t.Removable(now)
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, byRank)
	return out
}

// byRank is the order of removal. It is used with stable sorts alone: processes
// stay in the order of their start.
func byRank(a, b rundir.Leftover) int { return rank(a.Kind) - rank(b.Kind) }

// rank is the order of removal: what makes things first; rules while their
// device is there, and before the container, whose last write-back would else
// take its time; then what uses the others.
func rank(kind string) int {
	return slices.Index([]string{KindProcess, KindThrottle, KindContainer, KindNetwork, KindLxcfs, KindLoop, KindFolder}, kind)
}

// Remove removes things in the order that they need. One that cannot be
// removed does not keep the rest. What a process made before it could be ended,
// and what it started that goes on, is removed with it.
func Remove(ctx context.Context, things []rundir.Leftover) error {
	things = slices.Clone(things)
	slices.SortStableFunc(things, byRank)
	var errs []error
	ended := map[string]bool{}
	for len(things) > 0 && things[0].Kind == KindProcess {
		p := things[0]
		ended[p.Ref] = true
		errs = append(errs, remove(ctx, p))
		more, err := Find(ctx, rundir.Label{Run: p.Run, Scope: p.Scope})
		errs = append(errs, err)
		more = slices.DeleteFunc(more, func(m rundir.Leftover) bool { return m.Kind == KindProcess && ended[m.Ref] })
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
func removeAlike(ctx context.Context, things []rundir.Leftover) error {
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
func join(things, more []rundir.Leftover) []rundir.Leftover {
	for _, m := range more {
		if !slices.ContainsFunc(things, func(t rundir.Leftover) bool { return t.Kind == m.Kind && t.Ref == m.Ref }) {
			things = append(things, m)
		}
	}
	slices.SortStableFunc(things, byRank)
	return things
}

func remove(ctx context.Context, t rundir.Leftover) error {
	if err := removeKind(ctx, t); err != nil {
		return fmt.Errorf("removing %s %s: %w", t.Kind, t.Ref, err)
	}
	return nil
}

func removeKind(ctx context.Context, t rundir.Leftover) error {
	switch t.Kind {
	case KindProcess:
		o, err := rundir.ParseOwner(t.Ref)
		if err != nil {
			return err
		}
		return child.End(ctx, o, programOf(o))
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

// Makes tells whether a kind of ledger entry is one of the lab's, whose things
// [Find] finds.
func Makes(kind string) bool { return rank(kind) >= 0 }
