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

// Probe says what the hardware's limits are: those of the lab's own profiles and
// links. What have covers is taken from it and not looked at again, since Kafka
// may own those disks by now; have may be nil. The answer covers hosts and no others.
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
	for _, d := range h.Disks {
		l.DiskWrite = sum(l.DiskWrite, d.Write)
		l.DiskRead = sum(l.DiskRead, d.Read)
	}
	if l.DiskWrite != nil || l.DiskRead != nil {
		l.DiskSource = "profile"
	}
	if h.LinkRate > 0 {
		bytes := float64(h.LinkRate) / 8
		l.Network, l.NetSource = &bytes, "shaped"
	}
	return l
}

// sum adds a limit where there is one.
func sum(have *float64, limit int64) *float64 {
	if limit <= 0 {
		return have
	}
	total := float64(limit)
	if have != nil {
		total += *have
	}
	return &total
}
