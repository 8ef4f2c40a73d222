package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"krig/internal/rundir"
)

// A Spec is one host as it shall be. A host whose Spec changes is made again.
type Spec struct {
	Rig      string  `json:"rig"`       // name of the rig that it belongs to
	Name     string  `json:"name"`      // b1, c1, w1, ...
	CPUs     float64 `json:"cpus"`      // processors it may use; 0 is not limited
	Memory   int64   `json:"memory"`    // bytes it may use; 0 is not limited
	LinkRate int64   `json:"link_rate"` // bits/s in each direction; 0 is not shaped
	Disk     Disk    `json:"disk"`
	Remake   int     `json:"remake,omitempty"` // for an engine that goes by its records: see [Lab.Remade]
}

// Valid tells what is wrong with a Spec that a user wrote.
func (s Spec) Valid() error {
	if !hostName(s.Name) {
		return fmt.Errorf("a host cannot be called %q: a name is a small letter and at most 30 small letters and digits", s.Name)
	}
	for what, n := range map[string]int64{"memory": s.Memory, "link_rate": s.LinkRate, "disk.size": s.Disk.Size,
		"disk.write": s.Disk.Write, "disk.read": s.Disk.Read, "disk.iops": int64(s.Disk.IOPS)} {
		if n < 0 {
			return fmt.Errorf("host %s: %s is %d and must not be negative", s.Name, what, n)
		}
	}
	if s.CPUs < 0 {
		return fmt.Errorf("host %s: cpus is %v and must not be negative", s.Name, s.CPUs)
	}
	return nil
}

// hostName tells whether a text can be a host's name, in file names and in DNS.
func hostName(s string) bool {
	return len(s) <= 31 && s != "" && s[0] >= 'a' && s[0] <= 'z' && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Made is a host that stands, with what it was made for. It is kept in the
// run directory, for the next process.
type Made struct {
	Spec   Spec        `json:"spec"`
	Engine string      `json:"engine"` // which made it: another's is never adopted
	Host   rundir.Host `json:"host"`   // without roles: these are the rig's
}

func recordOf(name string) string { return filepath.Join("infra", "lab", "hosts", name+".json") }

func lockOf(name string) string { return filepath.Join("hosts", name+".lock") }

// Standing are the hosts of the run by name. One that does not run, or that
// another engine made, has a Spec that fits nothing.
func (l *Lab) Standing(ctx context.Context) (map[string]Made, error) {
	all, err := listContainers(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for the hosts that stand: %w", err)
	}
	out := map[string]Made{}
	for _, c := range all {
		if c.Labels["krig-run"] != l.run.Short || len(c.Names) != 1 {
			continue
		}
		name := strings.TrimPrefix(c.Names[0], l.container(""))
		m, _, err := l.recorded(name)
		if err != nil {
			return nil, err
		}
		if c.State != "running" || m.Engine != l.engine {
			m.Spec = Spec{Name: name}
		}
		out[name] = m
	}
	return out, nil
}

// recorded is what the run directory says of a host; ok is false where it does
// not know one of the name.
func (l *Lab) recorded(name string) (m Made, ok bool, err error) {
	err = l.run.ReadJSON(&m, recordOf(name))
	if errors.Is(err, os.ErrNotExist) {
		return Made{}, false, nil
	}
	return m, err == nil, err
}

// Records are the hosts that this engine made, of those that are named, as the
// run directory describes them; whether they still run it does not say.
func (l *Lab) Records(names ...string) (map[string]Made, error) {
	out := map[string]Made{}
	for _, name := range names {
		m, ok, err := l.recorded(name)
		if err != nil {
			return nil, err
		}
		if ok && m.Engine == l.engine {
			out[name] = m
		}
	}
	return out, nil
}

// Remade is what an engine that goes by its own records must be told so that it
// makes a host again that no longer stands as they say: its Spec with another
// Remake. All others keep theirs. have is [Lab.Standing].
func (l *Lab) Remade(want []Spec, have map[string]Made) ([]Spec, error) {
	out := slices.Clone(want)
	for i, s := range want {
		mine, err := l.Records(s.Name)
		if err != nil {
			return nil, err
		}
		m, ok := mine[s.Name]
		if !ok {
			continue
		}
		out[i].Remake = m.Spec.Remake
		if have[s.Name].Spec != m.Spec {
			out[i].Remake++
		}
	}
	return out, nil
}
