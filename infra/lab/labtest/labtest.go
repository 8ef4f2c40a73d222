// Package labtest gives tests real lab hosts, and takes them away again.
package labtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// Spec is the rig that a test wants.
type Spec struct {
	Brokers, Controllers, Workers int // hosts of each; without controllers b1 is one too

	DiskSize    experiment.Bytes // of each broker; 0 means 1 GiB
	DiskProfile string           // "" means none
	DiskWrite   experiment.Rate  // of a custom profile
	DiskRead    experiment.Rate
	DiskIOPS    int
	Rate        experiment.BitRate // each host's link
	CPUs        float64            // of each host
	Memory      experiment.Bytes   // of each host; 0 means 2 GiB
}

// Cell is an experiment's cell that asks for the rig and nothing else.
func (s Spec) Cell() *experiment.Cell {
	pool := func(n int) experiment.Pool {
		return experiment.Pool{Count: n, Network: experiment.Network{Rate: s.Rate}, CPUs: s.CPUs, Memory: either(s.Memory, 2<<30)}
	}
	brokers := pool(s.Brokers)
	brokers.Disk = experiment.Disk{Size: either(s.DiskSize, 1<<30), Profile: either(s.DiskProfile, "none"),
		Write: s.DiskWrite, Read: s.DiskRead, IOPS: s.DiskIOPS}
	switch s.DiskProfile {
	case "ssd":
		brokers.Disk.Write, brokers.Disk.Read = 30<<20, 60<<20
	case "hdd":
		brokers.Disk.Write, brokers.Disk.Read = 12<<20, 24<<20
	}
	return &experiment.Cell{
		ID: "cell", RigName: "lab",
		Rig:   experiment.Rig{Provider: "lab", Engine: "direct", Brokers: brokers, Controllers: pool(s.Controllers), Workers: pool(s.Workers)},
		Kafka: experiment.Kafka{Mode: "kraft"},
	}
}

func either[T comparable](v, without T) T {
	var zero T
	if v == zero {
		return without
	}
	return v
}

// Need skips the test where no lab can be had, and fails it in CI.
func Need(t testing.TB) {
	t.Helper()
	for _, l := range infra.Check(t.Context(), nil) {
		if l.Warning {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("no lab on this machine: %s: %s", l.What, l.Remedy)
		}
		t.Skipf("no lab on this machine: %s: %s", l.What, l.Remedy)
	}
}

// Scope gives the test a KRIG_SCOPE of its own, and asserts at its end that
// nothing of the scope stands; what does is removed. It may not be used in
// parallel tests.
func Scope(t *testing.T) string {
	t.Helper()
	scope := fmt.Sprintf("%s-%d-%d", strings.Map(plain, t.Name()), os.Getpid(), time.Now().UnixNano()%1e9)
	t.Setenv("KRIG_SCOPE", scope)
	t.Cleanup(func() { nothingStands(t, scope) })
	return scope
}

func plain(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

func nothingStands(t *testing.T, scope string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	left, err := infra.Find(ctx, infra.Label{Scope: scope})
	if err != nil {
		t.Errorf("looking for what the test left: %v", err)
	}
	for _, l := range left {
		t.Errorf("the test left %s %s", l.Kind, l.Ref)
	}
	if err := infra.Remove(ctx, left); err != nil {
		t.Errorf("removing what the test left: %v", err)
	}
}

// Hosts makes a rig in a run of its own and removes it at the end of the test.
// It may not be used in parallel tests.
func Hosts(t *testing.T, s Spec) (*rundir.Run, []rundir.Host) {
	t.Helper()
	Need(t)
	Scope(t)
	run := Run(t)
	hosts, err := infra.Apply(t.Context(), run, infra.Want{Cell: s.Cell(), Expiry: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatalf("making lab hosts: %v", err)
	}
	return run, hosts
}

// Run makes a run directory whose hosts are removed at the end of the test.
func Run(t *testing.T) *rundir.Run {
	t.Helper()
	run, err := rundir.Create(t.TempDir(), "labtest", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if err := infra.Destroy(ctx, run); err != nil {
			t.Errorf("removing lab hosts: %v", err)
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	})
	return run
}
