// Package bench puts load on a cluster and measures it: the third stage. It
// knows nothing of how hosts were made or prepared.
package bench

import (
	"context"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// Check tells what a cell asks that its driver cannot do, without contacting anything.
func Check(c *experiment.Cell) []experiment.Problem {
	out := checkNames(c)
	d, err := driverOf(c)
	if err != nil {
		return append(out, experiment.Problem{Path: "bench.driver", Reason: err.Error()})
	}
	return append(out, d.check(c)...)
}

// Probe says what the hosts' limits are. Nothing is measured: they are what
// the hosts were made with, the profiles of their disks and the shaping of their
// links, and unknown where there is none. What have covers is taken from it;
// have may be nil. The answer covers hosts and no others.
func Probe(_ context.Context, _ *rundir.Run, _ *remote.Fleet, hosts []rundir.Host, _ *rundir.Prepared, have *rundir.Limits) (*rundir.Limits, error) {
	out := &rundir.Limits{Hosts: map[string]rundir.HostLimits{}}
	for _, h := range hosts {
		if have != nil {
			if known, ok := have.Hosts[h.Name]; ok {
				out.Hosts[h.Name] = known
				continue
			}
		}
		out.Hosts[h.Name] = given(h)
	}
	return out, nil
}

// given are the limits that a host was made with.
func given(h rundir.Host) rundir.HostLimits {
	var l rundir.HostLimits
	l.DiskWrite = sum(h.Disks, func(d rundir.Disk) int64 { return d.Write })
	l.DiskRead = sum(h.Disks, func(d rundir.Disk) int64 { return d.Read })
	if l.DiskWrite != nil || l.DiskRead != nil {
		l.DiskSource = "profile"
	}
	if h.LinkRate > 0 {
		bytes := float64(h.LinkRate) / 8
		l.Network, l.NetSource = &bytes, "shaped"
	}
	return l
}

// sum is the limit of disks together; nil where one of them has none.
func sum(disks []rundir.Disk, limit func(rundir.Disk) int64) *float64 {
	total := 0.0
	for _, d := range disks {
		if limit(d) <= 0 {
			return nil
		}
		total += float64(limit(d))
	}
	if total == 0 {
		return nil
	}
	return &total
}
