package infra_test

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/infra/lab/labtest"
	"krig/internal/rundir"
)

// An entry goes with the host that it is about, be that removed alone or with
// the rest; what was changed on hosts that stay must still be undone.
func TestEntriesOfHosts(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	run := labtest.Run(t)
	apply(t, run, labtest.Spec{Brokers: 1, Workers: 2})
	for _, host := range []string{"b1", "w1", "w2", "elsewhere"} {
		if err := run.Ledger.Do(rundir.Entry{Kind: "file", Scope: host, Ref: "/etc/x"}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	apply(t, run, labtest.Spec{Brokers: 1, Workers: 1})
	if got, want := scopes(t, run), "elsewhere w1 b1"; got != want {
		t.Errorf("without w2 entries of %q stand, want %q", got, want)
	}
	if err := infra.Destroy(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if got, want := scopes(t, run), "elsewhere"; got != want {
		t.Errorf("without any lab host entries of %q stand, want %q", got, want)
	}
}

// scopes are the hosts that entries stand for, the newest first.
func scopes(t *testing.T, run *rundir.Run) string {
	t.Helper()
	standing, err := run.Ledger.Standing()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range standing {
		if e.Scope != "" {
			out = append(out, e.Scope)
		}
	}
	return strings.Join(out, " ")
}

// A child that takes all the time there is keeps nobody from being told what
// stands; the next removal finds nothing in its way.
func TestStuckChild(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	run := labtest.Run(t)
	apply(t, run, labtest.Spec{Workers: 1})
	cmd := exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if _, err := run.Ledger.Started(cmd.Process.Pid, "podman run"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := contextFor(t, time.Second)
	defer cancel()
	err := infra.Destroy(ctx, run)
	var left *infra.LeftError
	if !asLeft(err, &left) || !strings.Contains(err.Error(), "container krig-"+run.Short+"-w1") {
		t.Errorf("with a child that does not end: %v", err)
	}
	if err := infra.Destroy(t.Context(), run); err != nil {
		t.Errorf("again: %v", err)
	}
	<-ended
	if standing, err := run.Ledger.Standing(); err != nil || len(standing) > 0 {
		t.Errorf("the ledger still has %v (%v)", standing, err)
	}
}

// A provider and an engine that do not go together are refused by name.
func TestNoSuchEngine(t *testing.T) {
	c := labtest.Spec{Workers: 1}.Cell()
	c.Rig.Engine = "shovel"
	got := infra.Refuse(c)
	if len(got) != 1 || got[0].Path != "rigs.lab.engine" || got[0].Reason != "provider lab has no engine shovel" ||
		!strings.HasPrefix(got[0].Expected, "direct or ") {
		t.Errorf("refused are %+v", got)
	}
	run, err := rundir.Create(t.TempDir(), "engine", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := infra.Apply(t.Context(), run, infra.Want{Cell: c}); err == nil || !strings.Contains(err.Error(), "provider lab has no engine shovel") {
		t.Errorf("applying: %v", err)
	}
}
