package rundir

// Ledger is the append-only record of everything created or changed, written
// and synced before it is done.
type Ledger struct{}

// Entry is one thing done to the world.
type Entry struct {
	ID     string `json:"id"`
	Kind   string `json:"kind"`             // container, network, loop, throttle, lxcfs, file, child, ...
	Scope  string `json:"scope"`            // host it is on; "" is this machine
	Ref    string `json:"ref"`              // what finds it again: a name, a path, a pid with start time and boot id
	Before string `json:"before,omitempty"` // what to put back
	State  State  `json:"state"`
}

// State of an entry.
type State string

// The states.
const (
	Intent State = "intent"
	Done   State = "done"
	Undone State = "undone"
)

// Do records the intent, does the thing, and records that it is done. When do
// fails the intent stays: down looks for what it may have left.
func (l *Ledger) Do(e Entry, do func() error) error { panic("being built") }

// Undo does the undoing of an entry and records it.
func (l *Ledger) Undo(e Entry, undo func() error) error { panic("being built") }

// Standing lists the entries that are not undone, newest first.
func (l *Ledger) Standing() ([]Entry, error) { panic("being built") }
