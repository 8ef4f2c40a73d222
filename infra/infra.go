// Package infra makes and removes the hosts of a rig: the first stage. It
// knows nothing of Kafka. Providers and engines are files of it; the lab's one
// host primitive is infra/lab.
package infra

import (
	"os"
	"strings"
	"time"

	"krig/infra/child"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// Want is the state that a rig shall have.
type Want struct {
	Cell   *experiment.Cell
	Expiry time.Time
	Kept   bool // the rig outlives krig (up, --keep): label krig-hold=kept
}

// Lack is one thing that keeps this machine from making hosts.
type Lack = child.Lack

// Label selects by Run, where that is set, and by Scope; the rest is not looked at.
type Label = rundir.Label

// Leftover is one thing of krig's that was found standing.
type Leftover = rundir.Leftover

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

// label is what all of a run carries.
func label(run *rundir.Run, w Want) Label {
	l := Label{Run: run.Short, Owner: rundir.Self().String(), Hold: rundir.HoldRun, Expiry: w.Expiry, Scope: scope()}
	if o, _, ok := run.Holder(); ok {
		l.Owner = o.String()
	}
	if w.Kept {
		l.Hold = rundir.HoldKept
	}
	return l
}
