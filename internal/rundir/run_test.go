package rundir

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

func holdLock(dir string) int {
	r, err := Open(dir)
	if err == nil {
		err = r.Lock()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("locked")
	select {}
}

func create(t *testing.T, runs, name string, now time.Time) *Run {
	t.Helper()
	r, err := Create(runs, name, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestCreate(t *testing.T) {
	runs := filepath.Join(t.TempDir(), "not", "there")
	r := create(t, runs, "disks", time.Date(2026, 3, 4, 5, 6, 7, 8, time.FixedZone("", 3600)))
	if !regexp.MustCompile(`^disks-20260304T040607Z-[a-z0-9]{6}$`).MatchString(r.ID) {
		t.Errorf("the id is %q", r.ID)
	}
	if !strings.HasSuffix(r.ID, "-"+r.Short) || r.Dir != filepath.Join(runs, r.ID) {
		t.Errorf("id %q, short id %q, directory %q", r.ID, r.Short, r.Dir)
	}
	if _, err := os.Stat(r.Path("ledger.jsonl")); err != nil {
		t.Error(err)
	}
	other := create(t, runs, "disks", time.Now())
	if other.Short == r.Short {
		t.Error("two runs have one short id")
	}
}

func TestCreateUnwritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, runs := range []string{file, filepath.Join(file, "runs"), "/proc/runs"} {
		_, err := Create(runs, "disks", time.Now())
		if err == nil || !strings.Contains(err.Error(), "making a run directory") || !strings.Contains(err.Error(), "choose another place with --runs") {
			t.Errorf("in %s: %v", runs, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v is left (%v)", left, err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	for _, bad := range []string{filepath.Join(dir, "missing-20260304T040607Z-abc123"), dir} {
		if _, err := Open(bad); err == nil {
			t.Errorf("%s is opened", bad)
		}
	}
}

func TestLock(t *testing.T) {
	r := create(t, t.TempDir(), "disks", time.Now())
	if err := r.Lock(); err != nil { // Create has it already
		t.Error(err)
	}
	if o, _, ok := r.Holder(); !ok || o != Self() {
		t.Errorf("held by %v, %v", o, ok)
	}
	second, err := Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	var locked *LockedError
	if err := second.Lock(); !errors.As(err, &locked) {
		t.Fatalf("a second krig gets %v", err)
	}
	if locked.Owner != Self() || time.Since(locked.Since) > time.Minute || locked.Run != r.ID {
		t.Errorf("refused with %+v", locked)
	}
	for _, want := range []string{r.ID, fmt.Sprint("process id ", os.Getpid()), "since 20"} {
		if !strings.Contains(locked.Error(), want) {
			t.Errorf("%q does not say %q", locked, want)
		}
	}
	if err := r.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := second.Lock(); err != nil {
		t.Errorf("after the first let go: %v", err)
	}
}

// A krig that is killed leaves no lock.
func TestLockOfKilled(t *testing.T) {
	r := create(t, t.TempDir(), "disks", time.Now())
	if err := r.Unlock(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "KRIG_TEST_LOCK="+r.Dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said string
	fmt.Fscanln(out, &said)
	var locked *LockedError
	if err := r.Lock(); !errors.As(err, &locked) || locked.Owner.PID != cmd.Process.Pid {
		t.Errorf("%q, and then %v", said, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, _, ok := r.Holder(); ok {
		t.Error("the dead hold it")
	}
	if err := r.Lock(); err != nil {
		t.Errorf("after the other was killed: %v", err)
	}
}

func TestListAndResolve(t *testing.T) {
	runs := t.TempDir()
	if none, err := List(filepath.Join(runs, "missing")); err != nil || len(none) > 0 {
		t.Errorf("a missing directory has %v (%v)", none, err)
	}
	newer := create(t, runs, "b-b", time.Date(2026, 3, 4, 5, 6, 8, 0, time.UTC))
	older := create(t, runs, "a", time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	if err := older.Close(); err != nil {
		t.Fatal(err)
	}
	if err := newer.Ledger.Do(Entry{Kind: "file", Ref: "f"}, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(runs, "other"), 0o755); err != nil {
		t.Fatal(err)
	}
	all, err := List(runs)
	if err != nil || len(all) != 2 {
		t.Fatalf("%v (%v)", all, err)
	}
	if a := all[0]; a.ID != older.ID || a.Name != "a" || a.Holder.PID != 0 || a.Standing != 0 || a.Started.Second() != 7 {
		t.Errorf("the older is %+v", a)
	}
	if b := all[1]; b.Dir != newer.Dir || b.Name != "b-b" || b.Short != newer.Short || b.Holder != Self() || b.Standing != 1 {
		t.Errorf("the newer is %+v", b)
	}
	for ref, want := range map[string]string{
		newer.Dir: newer.Dir, newer.ID: newer.Dir, newer.Short: newer.Dir, "b": newer.Dir, older.ID[:8]: older.Dir,
		newer.Dir + "/": newer.Dir,
	} {
		if len(ref) == 1 && strings.HasPrefix(older.Short, ref) {
			continue // the short ids are drawn
		}
		if got, err := Resolve(runs, ref); err != nil || got != want {
			t.Errorf("%q means %q (%v), want %q", ref, got, err, want)
		}
	}
	create(t, runs, "b-c", time.Now())
	for ref, want := range map[string]string{"zz/zz": "no such file", "": "no run", "zzzzzzz": "krig list shows", "b-": "may mean"} {
		if _, err := Resolve(runs, ref); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", ref, err, want)
		}
	}
}

func TestReport(t *testing.T) {
	r := create(t, t.TempDir(), "disks", time.Now())
	var got []Event
	r.Listen(func(e Event) { got = append(got, e) })
	at := time.Date(2026, 3, 4, 5, 6, 7, 500_000_000, time.UTC)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { r.Report(Event{At: at, Stage: "infra", Host: "b1", Message: "stands"}) })
	}
	wg.Wait()
	r.Report(Event{Stage: "bench", Throughput: 5}) // no line of the log
	r.Listen(nil)
	r.Report(Event{At: at, Stage: "infra", Message: "done"})
	if len(got) != 21 || got[20].At.IsZero() || got[20].Throughput != 5 {
		t.Errorf("heard %d events, the last %+v", len(got), got[len(got)-1])
	}
	log, err := os.ReadFile(r.Path("krig.log"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("2026-03-04T05:06:07.5Z infra: b1: stands\n", 20) + "2026-03-04T05:06:07.5Z infra: done\n"
	if string(log) != want {
		t.Errorf("the log is\n%s", log)
	}
}

func TestWriteJSON(t *testing.T) {
	r := create(t, t.TempDir(), "disks", time.Now())
	for _, v := range []string{"one", "two"} {
		if err := r.WriteJSON(v, "rigs", "lab", "1", "hosts.json"); err != nil {
			t.Fatal(err)
		}
		var back string
		if err := r.ReadJSON(&back, "rigs", "lab", "1", "hosts.json"); err != nil || back != v {
			t.Errorf("%q reads back as %q (%v)", v, back, err)
		}
	}
	files, err := os.ReadDir(r.Path("rigs", "lab", "1"))
	if err != nil || len(files) != 1 {
		t.Errorf("%v is there (%v)", files, err)
	}
	if err := r.WriteFile([]byte("{"), "broken.json"); err != nil {
		t.Fatal(err)
	}
	if err := r.ReadJSON(new(string), "broken.json"); err == nil || !strings.Contains(err.Error(), "broken.json") {
		t.Errorf("a broken file reads with %v", err)
	}
	if err := r.ReadJSON(new(string), "missing.json"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file reads with %v", err)
	}
}
