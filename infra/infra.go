// Package infra makes and removes the hosts of a rig: the first stage. It
// knows nothing of Kafka. Providers and engines are files of it; the lab's one
// host primitive is infra/lab.
package infra

import (
	"context"
	"time"

	"krig/internal/experiment"
	"krig/internal/rundir"
)

// Want is the state that a rig shall have.
type Want struct {
	Rig    string // its name in the experiment
	Cell   *experiment.Cell
	Expiry time.Time
	Kept   bool // the rig outlives krig (up, --keep): label krig-hold=kept
}

// Apply converges up and down to what is wanted and returns the hosts in a
// stable order (b1, b2, ..., c1, ..., w1, ...). Hosts that already are as
// wanted are kept as they stand; a host whose specification changed is made
// again (its Host value then differs from the earlier one).
func Apply(ctx context.Context, run *rundir.Run, w Want) ([]rundir.Host, error) {
	panic("being built")
}

// Check tells what this machine cannot do for the cells, before anything is
// touched: no podman, no root, a throttle that its cgroups do not have. It
// changes nothing. The same answers serve krig doctor.
func Check(ctx context.Context, cells []*experiment.Cell) []Lack { panic("being built") }

// Lack is one thing this machine lacks, and the command that gives it.
type Lack struct {
	What   string
	Remedy string
	Path   string // the experiment's key that needs it; "" when every lab run does
}

// Destroy ends the run's children, removes everything of the run that its
// ledger or its labels name, and lists again. What is left is in the error, each with the command
// that tries again. It may be called again, and after kill -9 at any instant.
func Destroy(ctx context.Context, run *rundir.Run) error { panic("being built") }

// Label selects what belongs to whom. An empty Run selects every run of this scope.
type Label struct {
	Run   string // a run's short id
	Scope string // KRIG_SCOPE
}

// Leftover is one thing of krig's that was found standing.
type Leftover struct {
	Kind   string    `json:"kind"` // container, network, loop device, ...
	Ref    string    `json:"ref"`
	Run    string    `json:"run"`   // short id
	Owner  string    `json:"owner"` // pid:start:boot id
	Hold   string    `json:"hold"`  // run or kept
	Expiry time.Time `json:"expiry"`
	Alive  bool      `json:"alive"` // its owner lives
	May    bool      `json:"may"`   // gc may remove it: dead owner and not kept, or expired
}

// Find asks this machine itself what carries the label; it needs no run directory.
func Find(ctx context.Context, l Label) ([]Leftover, error) { panic("being built") }

// Remove removes leftovers, in the order that they need.
func Remove(ctx context.Context, found []Leftover) error { panic("being built") }

// Names are the names of the hosts that a cell wants, in Apply's order. (The
// pipeline needs them to hand on what leaves before Apply removes it.)
func Names(c *experiment.Cell) []string { panic("being built") }

// LeftError says what Destroy or Remove could not remove.
type LeftError struct{ Left []Leftover }

func (e *LeftError) Error() string { panic("being built") }

// Lines are the leftovers, one a line, each with the command that tries again.
func (e *LeftError) Lines() []string { panic("being built") }
