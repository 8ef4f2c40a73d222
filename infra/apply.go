package infra

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"krig/infra/lab"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// atOnce is how many hosts are made or removed side by side. More gain
// nothing: podman does most of its work alone.
const atOnce = 4

// A pool is one of a rig's, and the letter that its hosts' names begin with.
type pool struct {
	name   string
	letter string
	of     experiment.Pool
}

// pools are in the order of hosts.
func pools(r experiment.Rig) []pool {
	return []pool{{"brokers", "b", r.Brokers}, {"controllers", "c", r.Controllers}, {"workers", "w", r.Workers}}
}

// Names are the hosts that a cell wants, in order: b1, b2, ..., c1, ..., w1, ....
func Names(c *experiment.Cell) []string {
	var out []string
	for _, s := range specs(c) {
		out = append(out, s.Name)
	}
	return out
}

// specs are the hosts that a cell wants, in order.
func specs(c *experiment.Cell) []lab.Spec {
	var out []lab.Spec
	count := c.Hosts()
	for _, p := range pools(c.Rig) {
		for n := 1; n <= count[p.name]; n++ {
			d := p.of.Disk
			out = append(out, lab.Spec{
				Rig: c.RigName, Name: p.letter + strconv.Itoa(n),
				CPUs: p.of.CPUs, Memory: int64(p.of.Memory), LinkRate: int64(p.of.Network.Rate),
				Disk: lab.Disk{Size: int64(d.Size), Profile: d.Profile, Write: int64(d.Write), Read: int64(d.Read), IOPS: d.IOPS},
			})
		}
	}
	return out
}

// roles gives each host of a cell its roles, by name.
func roles(c *experiment.Cell) map[string][]rundir.Role {
	out := map[string][]rundir.Role{}
	give := func(poolName string, n int, r rundir.Role) {
		for _, p := range pools(c.Rig) {
			for i := 1; p.name == poolName && i <= n; i++ {
				name := p.letter + strconv.Itoa(i)
				out[name] = append(out[name], r)
			}
		}
	}
	quorum := c.Quorum()
	give(owner(c.Rig, "brokers"), c.BrokerCount(), rundir.Broker)
	give(quorum.Pool, quorum.Count, rundir.Controller)
	give(owner(c.Rig, "workers"), c.WorkerCount(), rundir.Worker)
	return out
}

// owner follows on: to the pool that has the hosts.
func owner(r experiment.Rig, name string) string {
	for range pools(r) {
		for _, p := range pools(r) {
			if p.name == name && p.of.On != "" {
				name = p.of.On
				break
			}
		}
	}
	return name
}

// Apply converges up and down to what is wanted and returns the hosts in a
// stable order (b1, b2, ..., c1, ..., w1, ...). Hosts that already are as
// wanted are kept as they stand; a host whose specification changed is made
// again (its Host value then differs from the earlier one).
func Apply(ctx context.Context, run *rundir.Run, w Want) ([]rundir.Host, error) {
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
	return hosts(w.Cell, want, have, made), nil
}

func label(run *rundir.Run, w Want) lab.Label {
	l := lab.Label{Run: run.Short, Owner: rundir.Self().String(), Hold: lab.HoldRun, Expiry: w.Expiry, Scope: scope()}
	if o, _, ok := run.Holder(); ok {
		l.Owner = o.String()
	}
	if w.Kept {
		l.Hold = lab.HoldKept
	}
	return l
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
func hosts(c *experiment.Cell, want []lab.Spec, have map[string]lab.Made, made map[string]rundir.Host) []rundir.Host {
	role := roles(c)
	out := make([]rundir.Host, len(want))
	for i, s := range want {
		h, ok := made[s.Name]
		if !ok {
			h = have[s.Name].Host
		}
		h.Roles = role[s.Name]
		out[i] = h
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
