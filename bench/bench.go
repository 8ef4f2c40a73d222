// Package bench puts load on a cluster and measures it: the third stage. It
// knows nothing of how hosts were made or prepared.
package bench

import (
	"context"

	"krig/internal/experiment"
	"krig/internal/rundir"
)

// Check tells what a cell asks that its driver cannot do, without contacting anything.
func Check(c *experiment.Cell) []experiment.Problem {
	out := checkNames(c)
	if c.Bench.Driver == "perftest" {
		return append(out, checkPerftest(c)...)
	}
	return append(out, checkNative(c)...)
}

// driverOf is the cell's driver.
func driverOf(c *experiment.Cell) driver {
	if c.Bench.Driver == "perftest" {
		return perftest{}
	}
	return native{}
}

// Probe says what the hardware's limits are. Until probes are built these are the lab's
// own profiles.
func Probe(_ context.Context, hosts []rundir.Host) (*rundir.Limits, error) {
	out := &rundir.Limits{Hosts: map[string]rundir.HostLimits{}}
	for _, h := range hosts {
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
		out.Hosts[h.Name] = l
	}
	return out, nil
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
