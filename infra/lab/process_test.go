package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"krig/infra"
	"krig/infra/lab"
	"krig/infra/lab/labtest"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// TestMain is another process of a run where a test started this binary as one.
func TestMain(m *testing.M) {
	verb := os.Getenv("KRIG_TEST_LAB")
	if verb == "" {
		os.Exit(m.Run())
	}
	if err := other(verb, os.Getenv("KRIG_TEST_HOST"), os.Getenv("KRIG_TEST_RUN")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// other opens a lab, or makes or removes a host in one.
func other(verb, host, dir string) error {
	run, err := rundir.Open(dir)
	if err != nil {
		return err
	}
	defer run.Close()
	ctx := context.Background()
	if verb == "open" {
		_, err := lab.Open(ctx, run, labelOf(run))
		return err
	}
	l, err := lab.Join(run, lab.Terraform)
	if err != nil {
		return err
	}
	if verb == "remove" {
		_, err := l.RemoveOwn(ctx, host)
		return err
	}
	return l.InLedger("create "+host, func() error {
		h, err := l.Create(ctx, smallHost(host))
		return errors.Join(err, json.NewEncoder(os.Stdout).Encode(h))
	})
}

func labelOf(run *rundir.Run) rundir.Label {
	l := rundir.Label{Run: run.Short, Hold: rundir.HoldRun, Expiry: time.Now().Add(time.Hour), Scope: os.Getenv("KRIG_SCOPE")}
	if o, _, ok := run.Holder(); ok {
		l.Owner = o.String()
	}
	return l
}

func smallHost(name string) lab.Spec {
	return lab.Spec{Rig: "lab", Name: name, Memory: 256 << 20, Disk: lab.Disk{Size: 8 << 20, Profile: "none"}}
}

// An order is what one process does.
type order struct{ verb, host string }

// atOnce starts a process for each order, in a directory that no user stands
// in, and returns what each printed.
func atOnce(t *testing.T, run *rundir.Run, orders ...order) map[order][]byte {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	out := map[order][]byte{}
	for _, o := range orders {
		cmd := exec.Command(os.Args[0])
		cmd.Dir = "/usr"
		cmd.Env = append(os.Environ(), "KRIG_TEST_LAB="+o.verb, "KRIG_TEST_HOST="+o.host, "KRIG_TEST_RUN="+run.Dir)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%s %s: %v: %s", o.verb, o.host, err, stderr.Bytes())
			}
			mu.Lock()
			defer mu.Unlock()
			out[o] = stdout.Bytes()
		})
	}
	wg.Wait()
	return out
}

// newRun is a run without a lab; what it gets is removed with the test.
func newRun(t *testing.T) *rundir.Run {
	t.Helper()
	labtest.Need(t)
	labtest.Scope(t)
	run := labtest.Run(t)
	place := rundir.Entry{Kind: rundir.KindPlace, Ref: rundir.Place{Provider: lab.Provider}.String()}
	if err := run.Ledger.Do(place, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	return run
}

// Several processes open one lab, and make and remove hosts in it, all at once:
// none loses a race, and what is shared is made once.
func TestManyProcesses(t *testing.T) {
	run := newRun(t)
	secret, err := os.MkdirTemp("/srv", "krig-test-") // where the user stands
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(secret)
	if err := os.WriteFile(filepath.Join(secret, "plan"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(secret)
	if _, err := lab.Open(t.Context(), run, labelOf(run)); err != nil {
		t.Fatal(err)
	}
	atOnce(t, run, order{"open", ""}, order{"open", "again"}, order{"open", "and again"}, order{"open", "at last"})
	var make, remove []order
	for _, name := range []string{"b1", "b2", "b3", "w1", "w2", "w3"} {
		make, remove = append(make, order{"create", name}), append(remove, order{"remove", name})
	}
	addresses := map[string]bool{}
	for o, out := range atOnce(t, run, make...) {
		var h rundir.Host
		if err := json.Unmarshal(out, &h); err != nil || h.Name != o.host || addresses[h.Internal] {
			t.Fatalf("%s is %s (%v); addresses %v", o.host, out, err, addresses)
		}
		addresses[h.Internal] = true
		if got := onHost(t, run, h, "hostname; ls "+secret); got != h.Name {
			t.Errorf("%s says %q", h.Name, got)
		}
	}
	if how := linkAddress(t, addresses); how != "3" { // 3: it stays, whoever joins
		t.Errorf("the link address of the bridge was assigned in way %s", how)
	}
	once(t, run, map[string]int{"network": 1, "folder": 1, "container": 6, "loop": 6})
	atOnce(t, run, remove...)
	once(t, run, map[string]int{"network": 1, "folder": 1})
}

// linkAddress is how the bridge that routes to hosts has got its link address.
func linkAddress(t *testing.T, hosts map[string]bool) string {
	t.Helper()
	for ip := range hosts {
		out, err := exec.Command("ip", "-json", "route", "get", ip).Output()
		var routes []struct{ Dev string }
		if err == nil {
			err = json.Unmarshal(out, &routes)
		}
		if err != nil || len(routes) != 1 {
			t.Fatalf("the route to %s is %s (%v)", ip, out, err)
		}
		how, err := os.ReadFile("/sys/class/net/" + routes[0].Dev + "/addr_assign_type")
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(how))
	}
	return ""
}

// Processes open a lab that none has opened yet.
func TestOpenedAtOnce(t *testing.T) {
	run := newRun(t)
	atOnce(t, run, order{"open", ""}, order{"open", "again"}, order{"open", "and again"}, order{"open", "at last"})
	once(t, run, map[string]int{"network": 1, "folder": 1})
	l, err := lab.Join(run, lab.Terraform)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := l.Standing(t.Context()); err != nil || len(have) > 0 {
		t.Errorf("%v stand (%v)", have, err)
	}
}

// Processes that make the same host make it one after the other.
func TestOneHostTwice(t *testing.T) {
	run := newRun(t)
	if _, err := lab.Open(t.Context(), run, labelOf(run)); err != nil {
		t.Fatal(err)
	}
	first := atOnce(t, run, order{"create", "w1"})
	again := atOnce(t, run, order{"create", "w1"}, order{"create", "w1"}, order{"remove", "w2"})
	once(t, run, map[string]int{"network": 1, "folder": 1, "container": 1, "loop": 1})
	var a, b rundir.Host
	if err := errors.Join(json.Unmarshal(first[order{"create", "w1"}], &a), json.Unmarshal(again[order{"create", "w1"}], &b)); err != nil {
		t.Fatal(err)
	}
	if a.Internal != b.Internal || a.Same(b) {
		t.Errorf("made again, %+v is %+v", a, b)
	}
}

// once counts what stands of a run by kind, lxcfs and rules aside.
func once(t *testing.T, run *rundir.Run, want map[string]int) {
	t.Helper()
	found, err := lab.Find(t.Context(), labelOf(run))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]int{}
	for _, f := range found {
		if f.Kind != lab.KindThrottle {
			have[f.Kind]++
		}
		if !f.Alive || f.May {
			t.Errorf("found %+v", f)
		}
	}
	if have[lab.KindLxcfs] > 1 {
		t.Errorf("%d lxcfs run", have[lab.KindLxcfs])
	}
	delete(have, lab.KindLxcfs)
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("%v stand, want %v", have, want)
	}
}

func onHost(t *testing.T, run *rundir.Run, h rundir.Host, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := remote.Dial(ctx, h, run.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out, err := c.Output(ctx, "sh", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// A host of another engine is neither adopted nor removed by one that goes by
// its records; what no longer stands is told it.
func TestEngines(t *testing.T) {
	run := newRun(t)
	direct, err := lab.Open(t.Context(), run, labelOf(run))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := direct.Create(t.Context(), smallHost("b1")); err != nil {
		t.Fatal(err)
	}
	atOnce(t, run, order{"create", "w1"}, order{"remove", "b1"})
	once(t, run, map[string]int{"network": 1, "folder": 1, "container": 2, "loop": 2})
	terraform, err := lab.Join(run, lab.Terraform)
	if err != nil {
		t.Fatal(err)
	}
	fits := func(l *lab.Lab) string {
		have, err := l.Standing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(have["b1"].Spec == smallHost("b1"), have["w1"].Spec == smallHost("w1"))
	}
	if fits(direct) != "true false" || fits(terraform) != "false true" {
		t.Errorf("b1 and w1 fit directly: %s, through terraform: %s", fits(direct), fits(terraform))
	}
	remade(t, terraform, 0)
	if out, err := exec.Command("podman", "kill", "krig-"+run.Short+"-w1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	remade(t, terraform, 1)
}

func remade(t *testing.T, l *lab.Lab, want int) {
	t.Helper()
	have, err := l.Standing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Remade([]lab.Spec{smallHost("b1"), smallHost("w1")}, have)
	if err != nil || got[0].Remake != 0 || got[1].Remake != want {
		t.Errorf("%+v (%v), want w1 remade %d times", got, err, want)
	}
}

// What nobody knows any more is found by its environment, and ended the oldest first.
func TestFoundByEnvironment(t *testing.T) {
	run := newRun(t)
	if _, err := lab.Open(t.Context(), run, labelOf(run)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "sleep 300 & wait") // a tool, and what it calls
	cmd.Env = append(os.Environ(), lab.RunEnv+"="+run.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := awaitMakers(t, run, 2); err != nil {
		t.Fatal(err)
	}
	if err := infra.Destroy(t.Context(), run); err != nil {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the tool goes on")
		_ = unix.Kill(cmd.Process.Pid, unix.SIGKILL)
	}
	if _, err := lab.Join(run, lab.Terraform); !errors.Is(err, lab.ErrNone) {
		t.Errorf("the lab of a run that is taken down: %v", err)
	}
}

// awaitMakers waits until so many processes are found.
func awaitMakers(t *testing.T, run *rundir.Run, n int) error {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var have []rundir.Leftover
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); <-tick.C {
		found, err := lab.Find(t.Context(), labelOf(run))
		if err != nil {
			return err
		}
		have = nil
		for _, f := range found {
			if f.Kind == lab.KindProcess {
				have = append(have, f)
			}
		}
		if len(have) == n {
			return nil
		}
	}
	return fmt.Errorf("processes found are %+v, want %d", have, n)
}
