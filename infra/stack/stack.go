// Package stack is what infra's providers and its Terraform and Pulumi engines
// hand each other: what a provider asks of a stack, what an engine does with
// one, and the one contract by which hosts come out of it.
package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"krig/infra/child"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// Input is what a provider asks of a stack for one cell.
type Input struct {
	Module    string            // directory of the Terraform module, to be copied and never worked in
	Vars      map[string]any    // the module's variables; what an engine does not need to know
	Workspace string            // of the user's own back end; "" where the state lies in the run directory
	Place     rundir.Place      // where it makes things
	Env       map[string]string // for the tool, such as the lab's data folder
}

// A Stack is one rig's resources as an engine keeps them, in a directory of
// the run. What it knows it knows from there: another process, and krig on another
// day, opens it again.
type Stack interface {
	// Apply plans what the input asks, reports the changes, applies that very
	// plan and returns the output "hosts". Cancelling ctx sends the tool one
	// interrupt and waits for its end.
	Apply(ctx context.Context, in Input) (json.RawMessage, error)
	// Destroy destroys all that the stack knows, from its directory alone, with
	// the lock of a dead krig's own tool removed first. Without anything to
	// destroy it succeeds.
	Destroy(ctx context.Context) error
	// List is what the stack still knows of, by address. It contacts nothing.
	List(ctx context.Context) ([]string, error)
	// Scrub removes the state, plans and whatever else may hold a secret.
	Scrub() error
}

// Open opens the stack of one rig, made or not, in a directory of the run.
type Open func(run *rundir.Run, rig string) (Stack, error)

// A Provider is data for the engines: what to ask of a stack, and who finds
// what carries a label.
type Provider interface {
	// Name is the provider's in an experiment.
	Name() string
	// Refuse is what the provider cannot do for a cell. It contacts nothing.
	Refuse(c *experiment.Cell) []experiment.Problem
	// Check tells what this machine lacks for the cells.
	Check(ctx context.Context, cells []*experiment.Cell) []child.Lack
	// Input is the stack for a cell; label goes onto everything.
	Input(ctx context.Context, run *rundir.Run, c *experiment.Cell, label rundir.Label) (Input, error)
	// Hosts completes what the stack's output says of the hosts, once they
	// answer: see [Decode].
	Hosts(ctx context.Context, run *rundir.Run, c *experiment.Cell, out json.RawMessage) ([]rundir.Host, error)
	// Renew gives what stands a later expiry.
	Renew(ctx context.Context, run *rundir.Run, expiry time.Time) error
	// Limits are how long things take there.
	Limits() Limits
}

// Limits are how long a provider's things take at most.
type Limits struct {
	Apply   time.Duration // one change of the stack
	Destroy time.Duration // all of it
	Boot    time.Duration // from an address to a login
}

// Failure is why a change of a stack failed, as far as the tool's words tell.
type Failure string

// The failures that are told apart.
const (
	Other       Failure = ""
	Capacity    Failure = "no capacity"
	Quota       Failure = "quota reached"
	Throttled   Failure = "rate limited"
	Credentials Failure = "no credentials"
	Locked      Failure = "state locked"
)

// Error is a failed change: the resource and the provider's own message.
type Error struct {
	Failure
	Address string // of the resource; "" when it is none's
	Message string
	Lock    *Lock // of a state that is locked
}

func (e *Error) Error() string {
	s := e.Message
	if e.Address != "" {
		s = e.Address + ": " + s
	}
	if e.Failure != Other {
		s = string(e.Failure) + ": " + s
	}
	if e.Lock != nil {
		s += fmt.Sprintf("; locked by %s since %s (%s, lock %s)", e.Lock.Who, e.Lock.Since.UTC().Format(time.DateTime+" UTC"), e.Lock.Operation, e.Lock.ID)
	}
	return s
}

// Lock is who holds a state.
type Lock struct {
	ID, Who, Operation, Path string
	Since                    time.Time // zero when not told
}
