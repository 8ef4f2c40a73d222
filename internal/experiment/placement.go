package experiment

import (
	"strconv"

	"krig/internal/rundir"
)

// A Place is one host that a cell wants.
type Place struct {
	Name  string // b1, b2, ..., c1, ..., w1, ...: the first letter of its pool, and a number
	Pool  string // brokers, controllers or workers: the pool whose own it is
	Keys  Pool   // what that pool asks of each host
	Roles []rundir.Role
}

// Placement is the hosts that a cell wants, in order: b1, b2, ..., c1, ...,
// w1, .... Each is named once, with all that it does.
func (c *Cell) Placement() []Place {
	quorum := c.Quorum()
	brokers, nb := c.Rig.owner("brokers")
	workers, nw := c.Rig.owner("workers")
	count := c.Hosts()
	var out []Place
	for _, pool := range poolNames() {
		for n := 1; n <= count[pool]; n++ {
			p := Place{Name: pool[:1] + strconv.Itoa(n), Pool: pool, Keys: c.Rig.pool(pool)}
			if pool == brokers && n <= nb {
				p.Roles = append(p.Roles, rundir.Broker)
			}
			if pool == quorum.Pool && n <= quorum.Count {
				p.Roles = append(p.Roles, rundir.Controller)
			}
			if pool == workers && n <= nw {
				p.Roles = append(p.Roles, rundir.Worker)
			}
			out = append(out, p)
		}
	}
	return out
}
