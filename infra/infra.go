// Package infra makes and removes the hosts of a rig: the first stage. It
// knows nothing of Kafka. Providers and engines are files of it; the lab's one
// host primitive is infra/lab.
package infra

import (
	"os"
	"strings"
	"time"

	"krig/internal/experiment"
)

// Want is the state that a rig shall have.
type Want struct {
	Rig    string // its name in the experiment
	Cell   *experiment.Cell
	Expiry time.Time
	Kept   bool // the rig outlives krig (up, --keep): label krig-hold=kept
}

// Lack is one thing this machine lacks, and the command that gives it.
type Lack struct {
	What    string
	Remedy  string
	Path    string // the experiment's key that needs it; "" when every lab run does
	Warning bool   // a run works without it, but less well
}

// Label selects what belongs to whom. An empty Run selects every run of this scope.
type Label struct {
	Run   string // a run's short id
	Scope string // KRIG_SCOPE
}

// Leftover is one thing of krig's that was found standing.
type Leftover struct {
	Kind   string    `json:"kind"` // container, network, loop, ...
	Ref    string    `json:"ref"`
	Run    string    `json:"run"`   // short id
	Owner  string    `json:"owner"` // pid:start:boot id
	Hold   string    `json:"hold"`  // run or kept
	Expiry time.Time `json:"expiry"`
	Alive  bool      `json:"alive"` // its owner lives
	May    bool      `json:"may"`   // gc may remove it: dead owner and not kept, or expired

	scope string
}

// LeftError says what still stands after a removal, each thing with the
// command that tries again.
type LeftError struct {
	Run   string // the run's short id
	Left  []Leftover
	Cause error // why, where that is known
}

func (e *LeftError) Error() string {
	s := "left standing: " + strings.Join(e.Lines(), "; ")
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap is the cause.
func (e *LeftError) Unwrap() error { return e.Cause }

// Lines are one line a thing.
func (e *LeftError) Lines() []string {
	out := make([]string, len(e.Left))
	for i, l := range e.Left {
		out[i] = l.Kind + " " + l.Ref + ": krig down " + e.Run + " tries again"
	}
	return out
}

func scope() string { return os.Getenv("KRIG_SCOPE") }
