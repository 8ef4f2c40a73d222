package stack

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"krig/internal/experiment"
	"krig/internal/rundir"
)

// described is one host as a stack's output has it.
type described struct {
	name  string
	roles []rundir.Role
	host  rundir.Host // all but its name and roles in the rig
}

// Decode reads a stack's output "hosts" into the hosts of a cell, in the order
// of its placement. The output is a list of objects, or a map of them whose
// keys are names; infra/module/README.md says what an object holds. login has
// the user, key file and agent of hosts, and of the hosts that they are reached
// through; the output's own user goes before it.
//
// A host has the name of the placement that it carries, or else is the next of
// its role in the order of the output (of a map: of its keys, numbers by
// their value). What the host itself must be asked is left empty: see [Await].
// Everything wrong comes in one error, each with host and field.
func Decode(out json.RawMessage, c *experiment.Cell, login rundir.SSH) ([]rundir.Host, error) {
	var found problems
	all := found.hosts(out, login)
	found.twice(all)
	if len(found) > 0 {
		return nil, errors.Join(found...)
	}
	placed := found.place(all, c)
	return placed, errors.Join(found...)
}

// problems gathers what is wrong.
type problems []error

func (p *problems) add(at, reason, expected string) {
	s := "output hosts: "
	if at != "" {
		s += at + ": "
	}
	s += reason
	if expected != "" {
		s += "; expected " + expected
	}
	*p = append(*p, errors.New(s))
}

const hostsForm = "a list of objects, one a host, or a map from names to such objects"

// hosts reads the objects.
func (p *problems) hosts(out json.RawMessage, login rundir.SSH) []described {
	var list []json.RawMessage
	var named map[string]json.RawMessage
	var all []described
	switch {
	case isNull(out):
		p.add("", "has no value", hostsForm)
	case json.Unmarshal(out, &list) == nil:
		for i, one := range list {
			all = append(all, p.host(one, "", fmt.Sprintf("host number %d", i+1), login))
		}
	case json.Unmarshal(out, &named) == nil:
		for _, name := range slices.SortedFunc(maps.Keys(named), byKey) {
			all = append(all, p.host(named[name], name, "host "+printable(name), login))
		}
	default:
		p.add("", "is neither a list nor a map", hostsForm)
	}
	return all
}

// twice refuses names and addresses that two hosts have.
func (p *problems) twice(all []described) {
	first := map[string]string{}
	for _, d := range all {
		s, through := d.host.SSH, "directly"
		if s.Jump != nil {
			through = "through " + s.Jump.Address
		}
		for _, is := range []struct{ field, value, shown string }{
			{"name", d.name, printable(d.name)},
			{"address", fmt.Sprint(s.Address, " ", s.Port, " ", through), fmt.Sprintf("%s, port %d, %s", s.Address, s.Port, through)},
			{"internal", d.host.Internal, d.host.Internal},
		} {
			key := is.field + " " + is.value
			if other, ok := first[key]; ok && is.value != "" && s.Address != "" {
				p.add("host "+printable(d.name)+": "+is.field, is.shown+" is host "+printable(other)+"'s already", "one of its own")
				continue
			}
			first[key] = d.name
		}
	}
}

// roleOf is the role that a pool's hosts are there for.
func roleOf(pool string) rundir.Role { return rundir.Role(strings.TrimSuffix(pool, "s")) }

// place gives every place of a cell its host.
func (p *problems) place(all []described, c *experiment.Cell) []rundir.Host {
	places := c.Placement()
	of := p.pools(all, c)
	if len(*p) > 0 || !p.enough(of, c) {
		return nil
	}
	byName := map[string]described{}
	for _, d := range all {
		byName[d.name] = d
	}
	next := map[string]int{}
	var out []rundir.Host
	named := namesAll(places, of)
	for _, place := range places {
		d := of[place.Pool][next[place.Pool]]
		next[place.Pool]++
		if named {
			d = byName[place.Name]
		}
		h := d.host
		if d.name != place.Name {
			h.ID = cmp.Or(h.ID, d.name)
		}
		h.Name, h.Roles, h.Provider = place.Name, place.Roles, c.Rig.Provider
		out = append(out, h)
	}
	return out
}

// namesAll tells whether the hosts of every pool carry the names of its places.
func namesAll(places []experiment.Place, of map[string][]described) bool {
	for _, place := range places {
		if !slices.ContainsFunc(of[place.Pool], func(d described) bool { return d.name == place.Name }) {
			return false
		}
	}
	return true
}

// pools sorts the hosts by the pool whose they are: of their roles the one for
// which the cell has hosts of their own.
func (p *problems) pools(all []described, c *experiment.Cell) map[string][]described {
	of := map[string][]described{}
	for _, d := range all {
		var fit []string
		for pool, n := range c.Hosts() {
			if n > 0 && slices.Contains(d.roles, roleOf(pool)) {
				fit = append(fit, pool)
			}
		}
		slices.Sort(fit)
		at := "host " + printable(d.name) + ": role"
		switch len(fit) {
		case 1:
			of[fit[0]] = append(of[fit[0]], d)
		case 0:
			p.add(at, fmt.Sprintf("the experiment has no hosts of its own for %s", spell(d.roles)), "one of "+wanted(c))
		default:
			p.add(at, fmt.Sprintf("the experiment has hosts of their own for each of %s", spell(d.roles)), "one role")
		}
	}
	return of
}

// enough tells whether every pool has its number of hosts.
func (p *problems) enough(of map[string][]described, c *experiment.Cell) bool {
	before := len(*p)
	for pool, n := range c.Hosts() {
		if have := len(of[pool]); have != n {
			p.add("", fmt.Sprintf("has %d with role %s, and the experiment's %s.count is %d", have, roleOf(pool), pool, n),
				fmt.Sprintf("%d: the variable krig_hosts tells the module how many", n))
		}
	}
	slices.SortFunc((*p)[before:], func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return len(*p) == before
}

// wanted are the roles for which a cell has hosts, for people.
func wanted(c *experiment.Cell) string {
	var out []string
	for pool, n := range c.Hosts() {
		if n > 0 {
			out = append(out, string(roleOf(pool)))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func spell(roles []rundir.Role) string {
	out := make([]string, len(roles))
	for i, r := range roles {
		out[i] = string(r)
	}
	return strings.Join(out, ", ")
}
