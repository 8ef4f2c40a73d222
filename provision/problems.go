package provision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"krig/internal/experiment"
	"krig/internal/rundir"
)

// A HostProblem is what stands against a host, and what to do about it.
type HostProblem struct {
	Host   string
	What   string
	Remedy string
}

// FactsError names everything that stands against a rig's hosts. When it is
// returned, nothing of them was changed.
type FactsError struct{ Problems []HostProblem }

// Error is a table, one line a problem.
func (e *FactsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of the hosts' facts stand against it, nothing was changed:\n", len(e.Problems))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range e.Problems {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", p.Host, p.What, p.Remedy)
	}
	_ = w.Flush() // a Builder takes everything
	return strings.TrimRight(b.String(), "\n")
}

// factsError is nil where there are no problems.
func factsError(problems []HostProblem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b HostProblem) int { return cmp.Compare(a.Host, b.Host) })
	return &FactsError{problems}
}

const (
	spareSpace  = 256 << 20 // for logs and configuration, beside the distribution
	farOffClock = 30.0      // seconds; timestamps of records would be useless
)

// judge holds a host's facts against what a cell needs of it. size is the
// distribution's in bytes.
func judge(l layout, h rundir.Host, s *survey, c *experiment.Cell, size int64) []HostProblem {
	var out []HostProblem
	say := func(remedy, format string, args ...any) {
		out = append(out, HostProblem{h.Name, fmt.Sprintf(format, args...), remedy})
	}
	if free, need := s.facts.FreeSpace, size+spareSpace; free < need {
		say("free some, or give the host a larger disk", "%d MiB free for %s, %d MiB are needed", free>>20, l.dir(), need>>20)
	}
	if o := s.facts.Offset; abs(o) > farOffClock {
		say("set it, by NTP for example", "its clock is %.0f s away from this machine's", o)
	}
	for _, p := range s.foreign(l) {
		say("stop it, or use another host", "a Kafka that is not krig's runs, pid %d: %.120s", p.pid, p.argv)
	}
	for _, port := range portsOf(h, c) {
		if who, taken := s.listens[port]; taken && len(s.kafkas) == 0 {
			say("stop what listens there", "port %d is taken by %s", port, who)
		}
	}
	out = append(out, judgeDisks(l, h, s)...)
	out = append(out, judgePackages(h, s, c)...)
	return out
}

// portsOf are the ports that Kafka will use on a host.
func portsOf(h rundir.Host, c *experiment.Cell) []int {
	var out []int
	if h.Has(rundir.Broker) {
		out = append(out, brokerPort)
	}
	if h.Has(rundir.Controller) || h.Has(rundir.Broker) {
		out = append(out, controllerPort)
	}
	return out
}

// judgeDisks refuses devices that hold anything but this run's own file system.
func judgeDisks(l layout, h rundir.Host, s *survey) []HostProblem {
	var out []HostProblem
	if len(h.Disks) > 1 {
		var names []string
		for _, d := range h.Disks {
			names = append(names, d.Device)
		}
		out = append(out, HostProblem{h.Name, "it has several data disks: " + strings.Join(names, ", "), "give it one: log directories on several are not built yet"})
	}
	for _, d := range h.Disks {
		state := s.disks[d.Device]
		switch {
		case !state.present:
			out = append(out, HostProblem{h.Name, fmt.Sprintf("there is no block device %s", d.Device), "look at what the provider attached"})
		case !s.tools["blkid"]:
			out = append(out, HostProblem{h.Name, "blkid is missing: what " + d.Device + " holds cannot be told", "install util-linux"})
		case len(state.holds) > 0 && state.holds["LABEL"] != l.label():
			out = append(out, HostProblem{h.Name, fmt.Sprintf("%s holds something (%s)", d.Device, holding(state.holds)), "krig formats empty devices alone: empty it, or give another"})
		case !s.tools["mkfs.xfs"] && !s.tools["mkfs.ext4"]:
			out = append(out, HostProblem{h.Name, "neither mkfs.xfs nor mkfs.ext4 is there", "install xfsprogs or e2fsprogs"})
		}
	}
	return out
}

func holding(holds map[string]string) string {
	var out []string
	for _, k := range []string{"TYPE", "PTTYPE", "LABEL", "MOUNTED", "HOLDER", "SWAP"} {
		if v := holds[k]; v != "" {
			out = append(out, strings.ToLower(k)+" "+v)
		}
	}
	if len(out) == 0 {
		return "a signature that blkid knows"
	}
	return strings.Join(out, ", ")
}

// judgePackages tells what is missing and cannot be installed.
func judgePackages(h rundir.Host, s *survey, c *experiment.Cell) []HostProblem {
	var out []HostProblem
	for _, m := range missing(s, c) {
		if !s.tools["apt-get"] {
			out = append(out, HostProblem{h.Name, m.what + ", and not installable: the host has no apt-get", m.remedy})
		}
	}
	return out
}
