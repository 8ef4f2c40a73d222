package child

import (
	"os"
	"os/exec"
)

// A Lack is one thing this machine lacks, and the command that gives it.
type Lack struct {
	What    string
	Remedy  string
	Path    string // the experiment's key that needs it; "" when every run of the provider does
	Warning bool   // a run works without it, but less well
}

// A Program is one that must be there, and the Debian package that has it.
type Program struct {
	Name  string
	Paths []string // where it may also be, outside of PATH
	Pkg   string
}

// Missing are the programs that are not there.
func Missing(all ...Program) []Lack {
	var out []Lack
	for _, p := range all {
		if !p.there() {
			out = append(out, Lack{What: p.Name + " is not installed", Remedy: "apt-get install " + p.Pkg})
		}
	}
	return out
}

func (p Program) there() bool {
	if _, err := exec.LookPath(p.Name); err == nil {
		return true
	}
	for _, path := range p.Paths {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return false
}
