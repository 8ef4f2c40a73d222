package rundir

import "strings"

// KindPlace is the kind of a ledger entry that says where a run makes things,
// written before the first; its Ref is the [Place].
const KindPlace = "place"

// Place is where things stand: what must be asked for them.
type Place struct {
	Provider string `json:"provider"`          // lab, ...
	Account  string `json:"account,omitempty"` // a cloud's account or project
	Region   string `json:"region,omitempty"`
}

// String is provider/account/region, as in the ledger.
func (p Place) String() string {
	return strings.TrimRight(strings.Join([]string{p.Provider, p.Account, p.Region}, "/"), "/")
}

// ParsePlace reads what [Place.String] wrote.
func ParsePlace(s string) Place {
	provider, rest, _ := strings.Cut(s, "/")
	account, region, _ := strings.Cut(rest, "/")
	return Place{provider, account, region}
}
