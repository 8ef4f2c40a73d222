package infra

import (
	"context"

	"krig/infra/lab"
	"krig/internal/experiment"
)

// Check tells what this machine cannot do for the cells, before anything is
// touched: no podman, no root, a throttle that its cgroups do not have. It
// changes nothing. Without cells it answers for any lab run. The same answers
// serve krig doctor.
func Check(ctx context.Context, cells []*experiment.Cell) []Lack {
	var out []Lack
	seen := map[lab.Lack]bool{}
	add := func(l lab.Lack, path string, warning bool) {
		if !seen[l] {
			seen[l] = true
			out = append(out, Lack{What: l.What, Remedy: l.Remedy, Path: path, Warning: warning})
		}
	}
	for _, l := range lab.Lacks(lab.Needs{}) {
		add(l, "", false)
	}
	if len(out) == 0 { // podman is there and may be asked
		if l, none := lab.NoSubnet(ctx); none {
			add(l, "", false)
		}
	}
	for _, c := range cells {
		for _, p := range pools(c.Rig) {
			for _, n := range needs(c, p) {
				for _, l := range lab.Lacks(n.Needs) {
					add(l, n.path, false)
				}
			}
		}
	}
	if l, short := lab.Full(most(cells, func(s lab.Spec) int64 { return s.Disk.Size })); short {
		add(l, "", false)
	}
	if l, short := lab.MemoryShort(most(cells, func(s lab.Spec) int64 { return s.Memory })); short {
		add(l, "", true)
	}
	return out
}

// A need is what one key of a pool asks.
type need struct {
	lab.Needs
	path string
}

// needs are what a pool's keys ask of this machine; a pool without hosts of
// its own asks nothing.
func needs(c *experiment.Cell, p pool) []need {
	if c.Hosts()[p.name] == 0 {
		return nil
	}
	path := "rigs." + c.RigName + "." + p.name + "."
	var out []need
	d := p.of.Disk
	if d.Size > 0 {
		out = append(out, need{lab.Needs{Disks: true}, path + "disk"})
	}
	if d.Write > 0 || d.Read > 0 || d.IOPS > 0 {
		key := "disk.profile"
		if d.Profile == "custom" {
			key = "disk"
		}
		out = append(out, need{lab.Needs{Throttle: true}, path + key})
	}
	if p.of.CPUs > 0 {
		out = append(out, need{lab.Needs{CPUs: true}, path + "cpus"})
	}
	if p.of.Memory > 0 {
		out = append(out, need{lab.Needs{Memory: true}, path + "memory"})
	}
	if p.of.Network.Rate > 0 {
		out = append(out, need{lab.Needs{Shape: true}, path + "network.rate"})
	}
	return out
}

// most is the largest sum over the hosts of one cell.
func most(cells []*experiment.Cell, of func(lab.Spec) int64) (largest int64) {
	for _, c := range cells {
		var sum int64
		for _, s := range specs(c) {
			sum += of(s)
		}
		largest = max(largest, sum)
	}
	return largest
}
