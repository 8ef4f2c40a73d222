package rundir

import "time"

// The two holds.
const (
	HoldRun  = "run"  // it ends with krig
	HoldKept = "kept" // it outlives krig, until down or its expiry
)

// A Label says whose a thing is. Everything that krig makes carries one,
// wherever it is.
type Label struct {
	Run    string    `json:"run"`    // the run's short id
	Owner  string    `json:"owner"`  // pid:start:boot id
	Hold   string    `json:"hold"`   // run or kept
	Expiry time.Time `json:"expiry"` // zero is never
	Scope  string    `json:"scope"`  // KRIG_SCOPE
}

// Tags are the label as keys and values, in a fixed order. [LabelFrom] reads them.
func (l Label) Tags() [][2]string {
	return [][2]string{
		{"krig-run", l.Run},
		{"krig-owner", l.Owner},
		{"krig-hold", l.Hold},
		{"krig-expiry", l.Expiry.UTC().Format(time.RFC3339)},
		{"krig-scope", l.Scope},
	}
}

// LabelFrom reads a label from the tags of a thing. Whatever is missing or
// unreadable stays empty, which counts as a dead owner's.
func LabelFrom(tags map[string]string) Label {
	expiry, err := time.Parse(time.RFC3339, tags["krig-expiry"])
	if err != nil {
		expiry = time.Time{}
	}
	return Label{Run: tags["krig-run"], Owner: tags["krig-owner"], Hold: tags["krig-hold"], Expiry: expiry, Scope: tags["krig-scope"]}
}

// Selects tells whether a thing with the other label is meant: one of the run,
// or of any run where Run is empty, and of the very scope.
func (l Label) Selects(other Label) bool {
	return (l.Run == "" || l.Run == other.Run) && l.Scope == other.Scope
}

// OwnerAlive tells whether the owner lives.
func (l Label) OwnerAlive() bool {
	o, err := ParseOwner(l.Owner)
	return err == nil && o.Alive()
}

// Removable tells whether gc may remove what carries the label at a time: what
// was kept, once it has expired; all else as soon as its owner is dead, and
// never before, however long the owner takes.
func (l Label) Removable(now time.Time) bool {
	if l.Hold == HoldKept {
		return !l.Expiry.IsZero() && now.After(l.Expiry)
	}
	return !l.OwnerAlive()
}

// A Leftover is one thing of krig's that was found standing, by its label alone.
type Leftover struct {
	Place        // where it stands
	Kind  string `json:"kind"` // as in the ledger: container, network, loop, ...
	Ref   string `json:"ref"`  // as in the ledger: a name, a path, a device; of a process its [Owner]
	Label
	Alive bool `json:"alive"` // its owner lives
	May   bool `json:"may"`   // gc may remove it: see [Label.Removable]
}
