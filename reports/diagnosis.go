package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"krig/internal/result"
	"krig/internal/rundir"
)

// atLimit is the share of a limit from which something counts as saturated.
// Throttles and shapers let bursts and stalls through, so that what is full
// reads a little below 100 % over a whole phase.
const atLimit = 0.85

// machine is the host name of the lab machine itself.
const machine = rundir.Machine

// resource is something that can be at its limit.
type resource string

const (
	diskWrite  resource = "disk, writing"
	diskRead   resource = "disk, reading"
	netIn      resource = "network, receiving"
	netOut     resource = "network, sending"
	processors resource = "processors"
	labMachine resource = "lab machine's processors"
)

// plural names the resource of all hosts, in a sentence.
func (r resource) plural() string {
	switch r {
	case diskWrite:
		return "disk writes"
	case diskRead:
		return "disk reads"
	case netIn:
		return "the incoming network"
	case netOut:
		return "the outgoing network"
	case labMachine:
		return "the lab machine itself"
	}
	return "hosts' processors"
}

// A share is how much of one limit one host used in the steady phase: bytes
// over bytes, or the busy part of its processors. Over several repeats it is
// the repeat with the median share.
type share struct {
	what   resource
	host   string
	used   float64 // bytes/s; for processors the busy part
	limit  float64 // bytes/s; for processors 1
	waited float64 // of the lab machine: the part of the time that something waited for a processor
	source string  // where the limit is known from: profile, shaped, probe, quota
	n      int     // valid repeats that know it
}

func (s share) part() float64 { return s.used / s.limit }

// A diagnosis is all shares of one cell, the largest first.
type diagnosis struct {
	shares  []share
	unknown []resource // things of these kinds have a use, and no known limit
	marks   []string   // of the valid repeats
}

// diagnose computes the shares of a cell from its valid repeats.
func diagnose(c *result.Cell, rigs []rigState) diagnosis {
	seen := map[string][]share{}
	unknown := map[resource]bool{}
	var d diagnosis
	for _, rep := range valid(c) {
		state := findRig(rigs, rep.Rig, rep.RigState)
		for _, s := range repeatShares(rep, state, unknown) {
			key := string(s.what) + "\n" + s.host
			seen[key] = append(seen[key], s)
		}
		for _, m := range rep.Marks {
			if !slices.Contains(d.marks, m) {
				d.marks = append(d.marks, m)
			}
		}
	}
	for _, all := range seen {
		d.shares = append(d.shares, middle(all))
	}
	slices.SortFunc(d.shares, func(a, b share) int {
		return cmp.Or(cmp.Compare(b.part(), a.part()), cmp.Compare(a.what, b.what), cmp.Compare(a.host, b.host))
	})
	for _, what := range []resource{diskWrite, diskRead, netIn, netOut} {
		if unknown[what] && !slices.ContainsFunc(d.shares, func(s share) bool { return s.what == what }) {
			d.unknown = append(d.unknown, what)
		}
	}
	return d
}

// middle is the share that is the median of several (the lower one of two).
func middle(all []share) share {
	slices.SortFunc(all, func(a, b share) int { return cmp.Compare(a.part(), b.part()) })
	m := all[(len(all)-1)/2]
	m.n = len(all)
	return m
}

// repeatShares are all shares of one repeat; what has a use and no limit goes to unknown.
func repeatShares(rep *result.Repeat, state *rigState, unknown map[resource]bool) []share {
	var out []share
	for name, host := range rep.Hosts {
		limits := hostLimits(state, name)
		for _, l := range limits {
			used, ok := host.Measures.Get(l.measure)
			switch {
			case !ok:
			case l.limit > 0:
				s := share{what: l.what, host: name, used: used, limit: l.limit, source: l.source}
				if name == machine {
					s.waited, _ = host.Measures.Get("cpu.pressure")
				}
				out = append(out, s)
			case used > 0 && name != machine:
				unknown[l.what] = true
			}
		}
	}
	return out
}

// limitOf is one thing of a host that has a limit, and the measure of its use.
type limitOf struct {
	what    resource
	measure string
	limit   float64 // 0 when not known
	source  string
}

// hostLimits are a host's limits: as probed, else as its disks' profiles and
// its link's shaping say.
func hostLimits(state *rigState, name string) []limitOf {
	if name == machine {
		return []limitOf{{labMachine, "cpu.busy", 1, "all its processors"}}
	}
	write := limitOf{what: diskWrite, measure: "disk.write"}
	read := limitOf{what: diskRead, measure: "disk.read"}
	in := limitOf{what: netIn, measure: "network.receive"}
	out := limitOf{what: netOut, measure: "network.transmit"}
	if state != nil {
		if h := findHost(state.hosts, name); h != nil {
			if len(h.Disks) > 0 {
				w, r, _ := disksTogether(h.Disks)
				write.limit, write.source = float64(w), "profile"
				read.limit, read.source = float64(r), "profile"
			}
			in.limit, in.source = float64(h.LinkRate)/8, "shaped"
			out.limit, out.source = in.limit, in.source
		}
		probed := state.limits.Hosts[name]
		write.take(probed.DiskWrite, probed.DiskSource)
		read.take(probed.DiskRead, probed.DiskSource)
		in.take(probed.Network, probed.NetSource)
		out.take(probed.Network, probed.NetSource)
	}
	return []limitOf{write, read, in, out, {processors, "cpu.busy", 1, "quota"}}
}

// disksTogether is what disks write and read as one, 0 where one of them has no
// limit, and their size.
func disksTogether(disks []rundir.Disk) (write, read, size int64) {
	for _, d := range disks {
		write, read, size = write+d.Write, read+d.Read, size+d.Size
	}
	for _, d := range disks {
		if d.Write <= 0 {
			write = 0
		}
		if d.Read <= 0 {
			read = 0
		}
	}
	return write, read, size
}

// take prefers what a probe found.
func (l *limitOf) take(limit *float64, source string) {
	if limit != nil {
		l.limit, l.source = *limit, source
	}
}

func findRig(rigs []rigState, rig string, n int) *rigState {
	for i := range rigs {
		if rigs[i].rig == rig && rigs[i].state == n {
			return &rigs[i]
		}
	}
	return nil
}

func findHost(hosts []rundir.Host, name string) *rundir.Host {
	for i := range hosts {
		if hosts[i].Name == name {
			return &hosts[i]
		}
	}
	return nil
}

// saturated are the shares at or above [atLimit], the largest first.
func (d diagnosis) saturated() []share {
	n := slices.IndexFunc(d.shares, func(s share) bool { return s.part() < atLimit })
	if n < 0 {
		n = len(d.shares)
	}
	return d.shares[:n]
}

// largest is the largest share of the resources named, of all when none is.
func (d diagnosis) largest(what ...resource) (share, bool) {
	for _, s := range d.shares {
		if len(what) == 0 || slices.Contains(what, s.what) {
			return s, true
		}
	}
	return share{}, false
}

// first is one share of each saturated resource: its host's that has most. The
// lab machine is among them whenever a repeat is marked so, since being short of
// processors shows in the waiting for them too.
func (d diagnosis) first() []share {
	var out []share
	if s, ok := d.largest(labMachine); ok && s.part() < atLimit && slices.Contains(d.marks, result.LimitedByLabMachine) {
		out = append(out, s)
	}
	for _, s := range d.saturated() {
		if !slices.ContainsFunc(out, func(have share) bool { return have.what == s.what }) {
			out = append(out, s)
		}
	}
	return out
}

// others counts the further hosts on which the same resource is saturated.
func (d diagnosis) others(s share) int {
	n := 0
	for _, o := range d.saturated() {
		if o.what == s.what && o.host != s.host {
			n++
		}
	}
	return n
}

// sentence says with figures what was at its limit, or that it is not determined.
func (d diagnosis) sentence(u units) string {
	var parts []string
	for _, s := range d.first() {
		text := s.text(u)
		if n := d.others(s); n > 0 {
			text += fmt.Sprintf(", and %d more", n)
		}
		parts = append(parts, text)
	}
	if slices.Contains(d.marks, result.LimitedByGenerator) {
		parts = append(parts, "the load generator itself (its client buffer was never full)")
	}
	if len(parts) > 0 {
		return strings.Join(parts, "; ")
	}
	return "not determined" + d.nearest(u)
}

// nearest explains a diagnosis that names nothing.
func (d diagnosis) nearest(u units) string {
	text := ""
	if s, ok := d.largest(); ok {
		text = ": nearest was " + s.text(u)
	}
	for _, what := range d.unknown {
		text += "; no limit is known of " + string(what)
	}
	return text
}

// text is one share with its figures: "disk of b2 wrote 30.1 of 31.5 MB/s (96 %)".
func (s share) text(u units) string {
	if s.what == labMachine {
		return "the lab machine itself, " + s.brief(u)
	}
	if s.what == processors {
		return fmt.Sprintf("processors of %s %s busy", s.host, percent(s.part()))
	}
	sc := u.scaleFor(result.BytesPerSecond, s.limit)
	return fmt.Sprintf("%s %s of %s %s (%s)", s.verb(), sc.number(s.used), sc.number(s.limit), sc.unit, percent(s.part()))
}

// brief is the figures where the resource has been named already.
func (s share) brief(u units) string {
	if s.what != labMachine {
		return s.text(u)
	}
	text := "its processors " + percent(s.part()) + " busy"
	if s.waited > 0 {
		text += " and waited for " + percent(s.waited) + " of the time"
	}
	return text
}

func (s share) verb() string {
	switch s.what {
	case diskWrite:
		return "disk of " + s.host + " wrote"
	case diskRead:
		return "disk of " + s.host + " read"
	case netIn:
		return "network of " + s.host + " received"
	}
	return "network of " + s.host + " sent"
}

// short is one share in a table: "disk b2 96 %".
func (s share) short() string {
	word := map[resource]string{diskWrite: "disk", diskRead: "disk read", netIn: "network in", netOut: "network out", processors: "CPU"}[s.what]
	if s.what == labMachine {
		return "lab machine " + percent(s.part())
	}
	return word + " " + s.host + " " + percent(s.part())
}

// valid are the repeats that count.
func valid(c *result.Cell) []*result.Repeat {
	var out []*result.Repeat
	for i := range c.Repeats {
		if c.Repeats[i].Status == result.Valid {
			out = append(out, &c.Repeats[i])
		}
	}
	return out
}
