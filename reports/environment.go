package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"krig/internal/kafka"
	"krig/internal/rundir"
)

// environment is environment.json: what the run was measured on.
type environment struct {
	Krig     string       `json:"krig"`
	Kafka    []string     `json:"kafka"` // versions, as the clusters say
	Java     []string     `json:"java"`
	Kernel   []string     `json:"kernel"`
	Hosts    []envHost    `json:"hosts"`
	Settings []envSetting `json:"settings"` // asked ones that are not in effect as asked
	Warnings []string     `json:"warnings"` // the clusters' own
}

// envHost is one host in one state of a rig: as made, as found, and its limits.
type envHost struct {
	Rig      string            `json:"rig"`
	RigState int               `json:"rig_state"`
	Host     rundir.Host       `json:"host"`
	Facts    *rundir.Facts     `json:"facts"`  // null when the host was never prepared
	Limits   rundir.HostLimits `json:"limits"` // bytes/s; null when not known
}

// envSetting is one broker setting whose effective value is not the asked one.
type envSetting struct {
	Key       string   `json:"key"`
	Asked     string   `json:"asked"`
	Effective *string  `json:"effective"` // null when the broker does not tell
	Brokers   []string `json:"brokers"`   // hosts
}

// hosts are all hosts.json gathered.
func (a *analysis) hosts() []hostsState {
	out := make([]hostsState, len(a.rigs))
	for i, r := range a.rigs {
		out[i] = hostsState{Rig: r.rig, RigState: r.state, Hosts: r.hosts}
	}
	return out
}

// clusters are all clusters/<m>.json gathered.
func (a *analysis) clusters() []clusterState {
	out := []clusterState{}
	for _, r := range a.rigs {
		out = append(out, r.clusters...)
	}
	return out
}

// environment gathers it from every state of every rig.
func (a *analysis) environment() environment {
	env := environment{Krig: a.result.Krig, Hosts: []envHost{}, Warnings: []string{}}
	kafka, java, kernel := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, r := range a.rigs {
		for _, h := range r.hosts {
			host := envHost{Rig: r.rig, RigState: r.state, Host: h, Facts: r.factsOf(h.Name), Limits: r.limits.Hosts[h.Name]}
			env.Hosts = append(env.Hosts, host)
			if host.Facts != nil {
				java[host.Facts.Java], kernel[host.Facts.Kernel] = true, true
			}
		}
		for _, c := range r.clusters {
			kafka[c.Version] = true
			for _, w := range c.Warnings {
				if !slices.Contains(env.Warnings, w) {
					env.Warnings = append(env.Warnings, w)
				}
			}
		}
	}
	env.Kafka, env.Java, env.Kernel = words(kafka), words(java), words(kernel)
	env.Settings = a.settings()
	return env
}

// words are the non-empty members of a set, sorted.
func words(set map[string]bool) []string {
	delete(set, "")
	return append([]string{}, slices.Sorted(maps.Keys(set))...)
}

func (r rigState) factsOf(host string) *rundir.Facts {
	for i := range r.prepared.Hosts {
		if r.prepared.Hosts[i].Name == host {
			return &r.prepared.Hosts[i].Facts
		}
	}
	return nil
}

// settings are the asked settings that are not in effect as asked, by key.
func (a *analysis) settings() []envSetting {
	seen := map[string]*envSetting{}
	for _, c := range a.clusters() {
		for _, node := range c.Brokers {
			for key, asked := range node.Asked {
				effective, told := node.Effective[key]
				if told && kafka.SameMeaning(asked, effective) {
					continue
				}
				addSetting(seen, node.Host, key, asked, effective, told)
			}
		}
	}
	out := []envSetting{}
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		slices.Sort(seen[id].Brokers)
		out = append(out, *seen[id])
	}
	return out
}

func addSetting(seen map[string]*envSetting, host, key, asked, effective string, told bool) {
	id := strings.Join([]string{key, asked, effective, strconv.FormatBool(told)}, "\n")
	s := seen[id]
	if s == nil {
		s = &envSetting{Key: key, Asked: asked}
		if told {
			s.Effective = &effective
		}
		seen[id] = s
	}
	if !slices.Contains(s.Brokers, host) {
		s.Brokers = append(s.Brokers, host)
	}
}

// warnings are everything that a reader must know and that is no repeat's own:
// missing repeats, and what the clusters said.
func (a *analysis) warnings() []string {
	out := []string{}
	for _, p := range a.problems() {
		if p.what == "missing" {
			out = append(out, p.where+" is missing: "+p.reason)
		}
	}
	return append(out, a.environment().Warnings...)
}

// A loss is a host's files that are missing or have holes.
type loss struct{ where, reason string }

// losses lists what the collectors lost, in the plan's order.
func (a *analysis) losses() []loss {
	var out []loss
	for _, c := range a.cells {
		for _, try := range attempts(c.result) {
			for _, host := range slices.SortedFunc(maps.Keys(try.Hosts), naturally) {
				if lost := try.Hosts[host].Lost; lost != "" {
					out = append(out, loss{host + ", " + try.name() + " of " + c.name, plain(lost)})
				}
			}
		}
	}
	return out
}

// naturally orders host names as people do: b2 before b10, the machine last.
func naturally(x, y string) int {
	if (x == machine) != (y == machine) {
		return map[bool]int{true: 1, false: -1}[x == machine]
	}
	px, nx := nameParts(x)
	py, ny := nameParts(y)
	return cmp.Or(cmp.Compare(px, py), cmp.Compare(nx, ny), cmp.Compare(x, y))
}

func nameParts(name string) (string, int) {
	stem := strings.TrimRight(name, "0123456789")
	n, _ := strconv.Atoi(name[len(stem):])
	return stem, n
}

// A remark is a warning, and the repeats that said it.
type remark struct {
	text  string
	where []string
}

// remarks are the repeats' warnings, each once, with who said it.
func (a *analysis) remarks() []remark {
	var out []remark
	at := map[string]int{}
	for _, c := range a.cells {
		for _, rep := range c.result.Repeats {
			all := rep.Warnings
			if rep.Settle.Residue != "" {
				all = append(slices.Clone(all), "after the load "+rep.Settle.Residue+" had not settled")
			}
			for _, w := range all {
				i, ok := at[w]
				if !ok {
					i = len(out)
					at[w] = i
					out = append(out, remark{text: w})
				}
				out[i].where = append(out[i].where, fmt.Sprintf("%s #%d", c.name, rep.Repeat))
			}
		}
	}
	return out
}
