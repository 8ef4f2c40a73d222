package infra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"krig/infra/lab"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// atOnce is how many hosts are made or removed side by side. More gain
// nothing: podman does most of its work alone.
const atOnce = 4

// labFinder asks this machine.
type labFinder struct{}

func (labFinder) Find(ctx context.Context, l Label) ([]Leftover, error) { return lab.Find(ctx, l) }

func (labFinder) Remove(ctx context.Context, found []Leftover) error { return lab.Remove(ctx, found) }

func (labFinder) Makes(kind string) bool { return lab.Makes(kind) }

// labDirect makes lab hosts in this process.
type labDirect struct{}

func (labDirect) Renew(_ context.Context, run *rundir.Run, expiry time.Time) error {
	return lab.Renew(run, expiry)
}

// Destroy leaves all to the finder: whatever the lab makes carries a label.
func (labDirect) Destroy(context.Context, *rundir.Run) error { return nil }

// Left is nothing: a finder finds all.
func (labDirect) Left(context.Context, *rundir.Run) ([]Leftover, error) { return nil, nil }

func (labDirect) Refuse(*experiment.Cell) []experiment.Problem { return nil }

func (labDirect) Forget(run *rundir.Run) error { return lab.Forget(run) }

func (labDirect) Apply(ctx context.Context, run *rundir.Run, w Want) ([]rundir.Host, error) {
	l, err := lab.Open(ctx, run, label(run, w))
	if err != nil {
		return nil, err
	}
	have, err := l.Standing(ctx)
	if err != nil {
		return nil, err
	}
	want := specs(w.Cell)
	surplus, missing := difference(want, have)
	if err := each(surplus, func(name string) error { return l.Remove(ctx, name) }); err != nil {
		return nil, err
	}
	if err := lab.Room(diskBytes(missing)); err != nil {
		return nil, err
	}
	made, err := create(ctx, run, l, missing)
	if err != nil {
		return nil, err
	}
	return hosts(w.Cell, have, made), nil
}

// specs are the hosts that a cell wants, in order.
func specs(c *experiment.Cell) []lab.Spec {
	var out []lab.Spec
	for _, p := range c.Placement() {
		d := p.Keys.Disk
		out = append(out, lab.Spec{
			Rig: c.RigName, Name: p.Name,
			CPUs: p.Keys.CPUs, Memory: int64(p.Keys.Memory), LinkRate: int64(p.Keys.Network.Rate),
			Disk: lab.Disk{Size: int64(d.Size), Profile: d.Profile, Write: int64(d.Write), Read: int64(d.Read), IOPS: d.IOPS},
		})
	}
	return out
}

// difference tells which hosts go, the highest numbers first, and which are to
// be made. One that changed is in both.
func difference(want []lab.Spec, have map[string]lab.Made) (surplus []string, missing []lab.Spec) {
	stay := map[string]bool{}
	for _, s := range want {
		if m, ok := have[s.Name]; ok && m.Spec == s {
			stay[s.Name] = true
		} else {
			missing = append(missing, s)
		}
	}
	for name := range have {
		if !stay[name] {
			surplus = append(surplus, name)
		}
	}
	slices.SortFunc(surplus, func(a, b string) int { return number(b) - number(a) })
	return surplus, missing
}

func number(name string) int {
	n, err := strconv.Atoi(name[min(1, len(name)):])
	if err != nil {
		return 0
	}
	return n
}

func diskBytes(specs []lab.Spec) (sum int64) {
	for _, s := range specs {
		sum += s.Disk.Size
	}
	return sum
}

func create(ctx context.Context, run *rundir.Run, l *lab.Lab, missing []lab.Spec) (map[string]rundir.Host, error) {
	var mu sync.Mutex
	made := map[string]rundir.Host{}
	err := each(missing, func(s lab.Spec) error {
		h, err := l.Create(ctx, s)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		made[s.Name] = h
		run.Report(rundir.Event{Stage: "infra", Host: s.Name, Message: fmt.Sprintf("stands at %s", h.Internal)})
		return nil
	})
	return made, err
}

// hosts puts those that stayed and those that were made in order.
func hosts(c *experiment.Cell, have map[string]lab.Made, made map[string]rundir.Host) []rundir.Host {
	var out []rundir.Host
	for _, p := range c.Placement() {
		h, ok := made[p.Name]
		if !ok {
			h = have[p.Name].Host
		}
		h.Roles = p.Roles
		out = append(out, h)
	}
	return out
}

// each does a thing for all, a few at once, in order, and waits for all.
func each[T any](all []T, do func(T) error) error {
	errs := make([]error, len(all))
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i, x := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(x)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
