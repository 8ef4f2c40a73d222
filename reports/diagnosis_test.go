package reports

import (
	"testing"

	"krig/internal/result"
	"krig/internal/rundir"
)

// used is a valid repeat with hosts' measures, as "host measure" → value.
func used(marks []string, uses map[string]map[string]float64) result.Repeat {
	r := result.Repeat{Rig: "lab", RigState: 1, Status: result.Valid, Marks: marks, Hosts: map[string]result.HostResult{}}
	for host, measures := range uses {
		m := result.Measures{}
		for name, v := range measures {
			m.Set(name, v, "B/s")
		}
		r.Hosts[host] = result.HostResult{Measures: m}
	}
	return r
}

func TestDiagnosis(t *testing.T) {
	hosts := []rundir.Host{
		{Name: "b1", Roles: []rundir.Role{rundir.Broker}, LinkRate: 800e6, Disks: []rundir.Disk{{Write: 30e6, Read: 60e6}}},
		{Name: "b2", Roles: []rundir.Role{rundir.Broker}, LinkRate: 800e6, Disks: []rundir.Disk{{Write: 30e6, Read: 60e6}}},
		{Name: "b3", Roles: []rundir.Role{rundir.Broker}, Disks: []rundir.Disk{{Write: 30e6, Read: 60e6}, {Write: 12e6}}},
		{Name: "w1", Roles: []rundir.Role{rundir.Worker}},
	}
	probed := 24e6
	type uses = map[string]map[string]float64
	tests := []struct {
		name    string
		limits  map[string]rundir.HostLimits
		repeats []result.Repeat
		want    string
	}{
		{"no valid repeat", nil, nil, "not determined"},
		{"disk", nil, []result.Repeat{used(nil, uses{"b1": {"disk.write": 29e6, "cpu.busy": 0.4}, "b2": {"disk.write": 20e6}})},
			"disk of b1 wrote 29.0 of 30.0 MB/s (97 %)"},
		{"both disks", nil, []result.Repeat{used(nil, uses{"b1": {"disk.write": 29e6}, "b2": {"disk.write": 28e6}})},
			"disk of b1 wrote 29.0 of 30.0 MB/s (97 %), and 1 more"},
		{"two disks of one host", nil, []result.Repeat{used(nil, uses{"b3": {"disk.write": 41e6}})},
			"disk of b3 wrote 41.0 of 42.0 MB/s (98 %)"},
		{"one of two disks has no limit", nil, []result.Repeat{used(nil, uses{"b3": {"disk.read": 59e6, "disk.write": 21e6}})},
			"not determined: nearest was disk of b3 wrote 21.0 of 42.0 MB/s (50 %); no limit is known of disk, reading"},
		{"a probe goes before the profile", map[string]rundir.HostLimits{"b1": {DiskWrite: &probed, DiskSource: "probe"}},
			[]result.Repeat{used(nil, uses{"b1": {"disk.write": 22e6}})}, "disk of b1 wrote 22.0 of 24.0 MB/s (92 %)"},
		{"network and processors", nil, []result.Repeat{used(nil, uses{"b1": {"network.transmit": 90e6, "cpu.busy": 0.95}})},
			"processors of b1 95 % busy; network of b1 sent 90.0 of 100 MB/s (90 %)"},
		{"just below", nil, []result.Repeat{used(nil, uses{"b1": {"disk.read": 0.849 * 60e6}})},
			"not determined: nearest was disk of b1 read 50.9 of 60.0 MB/s (85 %)"},
		{"a limit nobody knows", nil, []result.Repeat{used(nil, uses{"w1": {"network.transmit": 90e6, "cpu.busy": 0.5}})},
			"not determined: nearest was processors of w1 50 % busy; no limit is known of network, sending"},
		{"median of repeats", nil, []result.Repeat{
			used(nil, uses{"b1": {"disk.write": 29e6}}), used(nil, uses{"b1": {"disk.write": 10e6}}), used(nil, uses{"b1": {"disk.write": 27e6}})},
			"disk of b1 wrote 27.0 of 30.0 MB/s (90 %)"},
		{"the lab machine", nil, []result.Repeat{used([]string{result.LimitedByLabMachine}, uses{"machine": {"cpu.busy": 0.97}, "b1": {"disk.write": 15e6}})},
			"the lab machine itself, its processors 97 % busy"},
		{"the lab machine by pressure", nil, []result.Repeat{used([]string{result.LimitedByLabMachine}, uses{"machine": {"cpu.busy": 0.7}, "b1": {"disk.write": 29e6}})},
			"the lab machine itself, its processors 70 % busy; disk of b1 wrote 29.0 of 30.0 MB/s (97 %)"},
		{"the generator", nil, []result.Repeat{used([]string{result.LimitedByGenerator}, uses{"b1": {"disk.write": 15e6}})},
			"the load generator itself (its client buffer was never full)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rigs := []rigState{{rig: "lab", state: 1, hosts: hosts, limits: rundir.Limits{Hosts: tt.limits}}}
			d := diagnose(&result.Cell{Repeats: tt.repeats}, rigs)
			if got := d.sentence(units{}); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestInvalidRepeatsDiagnoseNothing(t *testing.T) {
	rep := used(nil, map[string]map[string]float64{"b1": {"cpu.busy": 1}})
	rep.Status = result.Invalid
	if d := diagnose(&result.Cell{Repeats: []result.Repeat{rep}}, nil); len(d.shares) != 0 {
		t.Errorf("an invalid repeat gave %v", d.shares)
	}
}
