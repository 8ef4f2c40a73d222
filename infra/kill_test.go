package infra_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"krig/infra"
	"krig/infra/lab"
	"krig/infra/lab/labtest"
	"krig/internal/cli"
	"krig/internal/rundir"
)

// killedRig is what the krig that is killed makes: each kind of thing that the
// lab knows.
var killedRig = labtest.Spec{Brokers: 2, Workers: 1, DiskProfile: "hdd", DiskSize: 32 << 20, Rate: 1e9}

// TestMain is a krig that can be killed where a test started this binary as
// one: it makes a rig, then another, and stays. It is krig itself where the lab's
// module calls it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "lab-host" {
		signals := make(chan os.Signal, 4)
		signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.IO{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Signals: signals}))
	}
	dir := os.Getenv("KRIG_TEST_RUNS")
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := victim(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func victim(runs string) error {
	ctx := context.Background()
	run, err := rundir.Create(runs, "victim", time.Now())
	if err != nil {
		return err
	}
	fmt.Println(run.Dir)
	engine := cmp.Or(os.Getenv("KRIG_TEST_ENGINE"), "direct")
	w := infra.Want{Cell: withEngine(killedRig, engine), Expiry: time.Now().Add(time.Hour), Kept: os.Getenv("KRIG_TEST_KEPT") != ""}
	if _, err := infra.Apply(ctx, run, w); err != nil {
		return err
	}
	if w.Kept {
		return run.Close()
	}
	smaller := killedRig
	smaller.Brokers, smaller.DiskSize = 1, 16<<20
	w.Cell = withEngine(smaller, engine)
	if _, err := infra.Apply(ctx, run, w); err != nil {
		return err
	}
	if err := infra.Destroy(ctx, run); err != nil {
		return err
	}
	return run.Close()
}

// startVictim starts a victim and returns its run directory.
func startVictim(t *testing.T, runs string, env ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "KRIG_TEST_RUNS="+runs), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var dir string
	if _, err := fmt.Fscanln(out, &dir); err != nil {
		t.Fatal(err)
	}
	return cmd, dir
}

// killAfter ends a victim after a while, or lets it end.
func killAfter(t *testing.T, cmd *exec.Cmd, d time.Duration) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the victim ended by itself: %v", err)
		}
		return
	case <-time.After(d):
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

// However early or late krig is killed, down by the run directory and gc
// without it leave nothing.
func TestKilled(t *testing.T) { killed(t, 6) }

// killed kills krig at random instants of making a rig, and sees that nothing is left.
func killed(t *testing.T, rounds int, env ...string) {
	t.Helper()
	labtest.Need(t)
	labtest.Scope(t)
	whole := 8 * time.Second
	for i := range rounds {
		by := []string{"down", "gc"}[i%2]
		delay := time.Duration(rand.Int64N(int64(whole)))
		t.Run(fmt.Sprintf("%s after %v", by, delay.Round(time.Millisecond)), func(t *testing.T) {
			begin := time.Now()
			cmd, dir := startVictim(t, t.TempDir(), env...)
			killAfter(t, cmd, delay)
			if took := time.Since(begin); took < delay {
				whole = took
			}
			if by == "down" {
				down(t, dir)
			} else {
				collect(t, dir)
			}
			nothing(t, dir)
		})
	}
}

// down removes by the ledger and the labels, twice, as krig down does.
func down(t *testing.T, dir string) {
	t.Helper()
	run, err := rundir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	for range 2 {
		if err := run.Lock(); err != nil {
			t.Fatal(err)
		}
		if err := infra.Destroy(t.Context(), run); err != nil {
			t.Error(err)
		}
		if standing, err := run.Ledger.Standing(); err != nil || len(standing) > 0 {
			t.Errorf("the ledger still has %v (%v)", standing, err)
		}
	}
	if _, err := os.Stat(run.Path("infra", "lab", "client_key")); err == nil {
		t.Error("the run's key is left")
	}
}

// collect removes by labels alone, as krig gc does.
func collect(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	found, err := infra.Find(t.Context(), infra.Label{Scope: os.Getenv("KRIG_SCOPE")})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found {
		if l.Alive || !l.May || l.Run != short(dir) {
			t.Errorf("found %+v, which gc would not remove", l)
		}
	}
	if err := infra.Remove(t.Context(), found); err != nil {
		t.Error(err)
	}
}

func short(dir string) string { return dir[len(dir)-6:] }

func nothing(t *testing.T, dir string) {
	t.Helper()
	labDir, err := lab.Dir()
	if err != nil {
		t.Fatal(err)
	}
	if left := traces(t, short(dir), labDir); len(left) > 0 {
		t.Errorf("left:\n%s", strings.Join(left, "\n"))
	}
	if r := strayRules(t); len(r) > 0 {
		t.Errorf("rules of no device: %v", r)
	}
}

// A kept rig outlives its krig: gc lets it stand until it expires, and another
// krig takes it over by its directory.
func TestKept(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	cmd, dir := startVictim(t, t.TempDir(), "KRIG_TEST_KEPT=1")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	found, err := infra.Find(t.Context(), infra.Label{Run: short(dir), Scope: os.Getenv("KRIG_SCOPE")})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, l := range found {
		kinds[l.Kind]++
		if l.Alive || l.May || l.Hold != "kept" || l.Expiry.Before(time.Now()) {
			t.Errorf("found %+v", l)
		}
	}
	if _, err := exec.LookPath("lxcfs"); err == nil && kinds["lxcfs"] != 1 {
		t.Errorf("lxcfs did not outlive its krig: %v", kinds)
	}
	if kinds["container"] != 3 || kinds["network"] != 1 || kinds["loop"] != 2 || kinds["folder"] != 1 {
		t.Errorf("found %v", kinds)
	}
	run, err := rundir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	hosts := apply(t, run, killedRig) // without keep: this process owns it now
	on(t, run, hosts[0], "true")
	found, err = infra.Find(t.Context(), infra.Label{Run: run.Short, Scope: os.Getenv("KRIG_SCOPE")})
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, l := range found {
		if !l.Alive || l.May || l.Hold != "run" {
			t.Errorf("taken over, found %+v", l)
		}
	}
	down(t, dir)
	nothing(t, dir)
}

// What was kept and has expired may go, whoever owns it, until its expiry is
// put off; another scope does not see it.
func TestExpiredAndScoped(t *testing.T) {
	labtest.Need(t)
	scope := labtest.Scope(t)
	run := labtest.Run(t)
	c := labtest.Spec{Workers: 1}.Cell()
	_, err := infra.Apply(t.Context(), run, infra.Want{Cell: c, Expiry: time.Now().Add(-time.Minute), Kept: true})
	if err != nil {
		t.Fatal(err)
	}
	found, err := infra.Find(t.Context(), infra.Label{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found {
		if !l.May || !l.Alive {
			t.Errorf("found %+v", l)
		}
	}
	if err := infra.Renew(t.Context(), run, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if found, err = infra.Find(t.Context(), infra.Label{Scope: scope}); err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, l := range found {
		if l.May || l.Provider != "lab" {
			t.Errorf("renewed, found %+v", l)
		}
	}
	for _, other := range []string{"", scope + "x"} {
		found, err := infra.Find(t.Context(), infra.Label{Run: run.Short, Scope: other})
		if err != nil || len(found) > 0 {
			t.Errorf("scope %q sees %v (%v)", other, found, err)
		}
	}
}

// gc beside a run that goes on takes the dead one's things alone.
func TestTwoRuns(t *testing.T) {
	labtest.Need(t)
	labtest.Scope(t)
	run := labtest.Run(t)
	hosts := apply(t, run, labtest.Spec{Brokers: 1, DiskSize: 16 << 20, DiskProfile: "hdd"})
	labDir, err := lab.Dir()
	if err != nil {
		t.Fatal(err)
	}
	if seen := traces(t, run.Short, labDir); len(seen) < 5 { // else nothing would prove nothing
		t.Errorf("of a rig that stands only %v is seen", seen)
	}
	cmd, dir := startVictim(t, t.TempDir())
	killAfter(t, cmd, 2500*time.Millisecond)
	all, err := infra.Find(t.Context(), infra.Label{Scope: os.Getenv("KRIG_SCOPE")})
	if err != nil {
		t.Fatal(err)
	}
	var may []infra.Leftover
	for _, l := range all {
		if l.May != (l.Run == short(dir)) {
			t.Errorf("found %+v", l)
		}
		if l.May {
			may = append(may, l)
		}
	}
	if err := infra.Remove(t.Context(), may); err != nil {
		t.Error(err)
	}
	nothing(t, dir)
	on(t, run, hosts[0], "test", "-b", hosts[0].Disks[0].Device)
	number, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(hosts[0].Disks[0].Device), "dev"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
	if err == nil && !strings.Contains(string(rules), strings.TrimSpace(string(number))+" ") {
		t.Errorf("the other run's disk lost its rule: %s", rules)
	}
}
