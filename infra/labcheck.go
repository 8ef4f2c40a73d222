package infra

import (
	"context"

	"krig/infra/lab"
	"krig/internal/experiment"
)

// Check asks first what every lab run needs, then what keys of the pools do.
func (labDirect) Check(ctx context.Context, cells []*experiment.Cell) []Lack {
	out := lab.Lacks(lab.Needs{})
	if len(out) == 0 { // podman is there and may be asked
		if l, none := lab.NoSubnet(ctx); none {
			out = append(out, l)
		}
	}
	asked := map[need]bool{}
	for _, c := range cells {
		for _, p := range c.Placement() {
			for _, n := range needs(c, p) {
				if !asked[n] {
					asked[n] = true
					out = append(out, n.lacks()...)
				}
			}
		}
	}
	if l, short := lab.Full(most(cells, func(s lab.Spec) int64 { return s.Disk.Size })); short {
		out = append(out, l)
	}
	if l, short := lab.MemoryShort(most(cells, func(s lab.Spec) int64 { return s.Memory })); short {
		out = append(out, l)
	}
	return once(out)
}

// once keeps the first of those that say the same.
func once(all []Lack) []Lack {
	var out []Lack
	seen := map[string]bool{}
	for _, l := range all {
		if !seen[l.What] {
			seen[l.What] = true
			out = append(out, l)
		}
	}
	return out
}

// A need is what one key of a pool asks.
type need struct {
	lab.Needs
	path string
}

func (n need) lacks() []Lack {
	out := lab.Lacks(n.Needs)
	for i := range out {
		out[i].Path = n.path
	}
	return out
}

// needs are what the keys of a host's pool ask of this machine.
func needs(c *experiment.Cell, p experiment.Place) []need {
	path := "rigs." + c.RigName + "." + p.Pool + "."
	var out []need
	d := p.Keys.Disk
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
	if p.Keys.CPUs > 0 {
		out = append(out, need{lab.Needs{CPUs: true}, path + "cpus"})
	}
	if p.Keys.Memory > 0 {
		out = append(out, need{lab.Needs{Memory: true}, path + "memory"})
	}
	if p.Keys.Network.Rate > 0 {
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
