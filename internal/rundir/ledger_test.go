package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain appends to a ledger instead where a test started this binary to
// have a second process.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("KRIG_TEST_LEDGER") != "":
		os.Exit(appendMany(os.Getenv("KRIG_TEST_LEDGER")))
	case os.Getenv("KRIG_TEST_LOCK") != "":
		os.Exit(holdLock(os.Getenv("KRIG_TEST_LOCK")))
	}
	os.Exit(m.Run())
}

const appends = 40

func appendMany(path string) int {
	l := &Ledger{path: path}
	for i := range appends {
		e := Entry{Kind: "file", Ref: fmt.Sprintf("%d-%d", os.Getpid(), i)}
		if err := l.Do(e, func() error { return nil }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return 0
}

func newLedger(t *testing.T) *Ledger {
	t.Helper()
	l := &Ledger{path: filepath.Join(t.TempDir(), ledgerFile)}
	t.Cleanup(func() { l.close() })
	return l
}

func refs(t *testing.T, l *Ledger) string {
	t.Helper()
	standing, err := l.Standing()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range standing {
		out = append(out, e.Kind+" "+e.Ref+" "+string(e.State))
	}
	return strings.Join(out, ", ")
}

func TestLedger(t *testing.T) {
	l := newLedger(t)
	if got := refs(t, l); got != "" {
		t.Errorf("a new ledger has %s", got)
	}
	during := ""
	err := l.Do(Entry{Kind: "network", Ref: "n"}, func() error { during = refs(t, l); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if during != "network n intent" {
		t.Errorf("while the network is made, the ledger says %q", during)
	}
	broken := errors.New("no room")
	if err := l.Do(Entry{Kind: "file", Ref: "f", Before: "b"}, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("Do returned %v", err)
	}
	if got, want := refs(t, l), "file f intent, network n done"; got != want {
		t.Errorf("standing: %s, want %s", got, want)
	}
	standing, err := l.Standing()
	if err != nil {
		t.Fatal(err)
	}
	if standing[0].Before != "b" || standing[0].At.IsZero() || standing[0].ID == standing[1].ID {
		t.Errorf("standing: %+v", standing)
	}
	if err := l.Undo(standing[1], func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("Undo returned %v", err)
	}
	if got, want := refs(t, l), "file f intent, network n done"; got != want {
		t.Errorf("after an undo that failed: %s, want %s", got, want)
	}
	for _, e := range standing {
		if err := l.Undo(e, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if got := refs(t, l); got != "" {
		t.Errorf("after all is undone: %s", got)
	}
}

func TestLedgerUnwritable(t *testing.T) {
	l := &Ledger{path: "/proc/no/such/ledger.jsonl"}
	done := false
	err := l.Do(Entry{Kind: "file", Ref: "f"}, func() error { done = true; return nil })
	if err == nil || done {
		t.Errorf("done %v without a ledger, error %v", done, err)
	}
}

func TestStarted(t *testing.T) {
	l := newLedger(t)
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	e, err := l.Started(cmd.Process.Pid, "sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	who, what, _ := strings.Cut(e.Ref, " ")
	o, err := ParseOwner(who)
	if err != nil || o.PID != cmd.Process.Pid || !o.Alive() || what != "sleep 60" || e.Kind != Child {
		t.Errorf("%+v: owner %+v, %v", e, o, err)
	}
	if got := refs(t, l); !strings.HasPrefix(got, "child ") {
		t.Errorf("standing: %s", got)
	}
}

// Several processes append to one ledger, and each line is whole.
func TestLedgerOfManyProcesses(t *testing.T) {
	l := newLedger(t)
	const processes = 4
	var cmds []*exec.Cmd
	for range processes {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "KRIG_TEST_LEDGER="+l.path)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	standing, err := l.Standing()
	if err != nil || len(standing) != processes*appends {
		t.Errorf("%d entries stand, want %d (%v)", len(standing), processes*appends, err)
	}
}

// A crash tears the last line; what it announced had not begun. The next
// append takes its place.
func TestTornLine(t *testing.T) {
	l := newLedger(t)
	if err := l.Do(Entry{Kind: "file", Ref: "a"}, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(l.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, torn := range []string{"{", `{"id":"x","kind":"fi`, "\x00\x00\x00", strings.Repeat("x", 5000)} {
		if err := os.WriteFile(l.path, append(bytes.Clone(whole), torn...), 0o644); err != nil {
			t.Fatal(err)
		}
		l := &Ledger{path: l.path}
		if got := refs(t, l); got != "file a done" {
			t.Errorf("with %.20q: %s", torn, got)
		}
		if err := l.Do(Entry{Kind: "file", Ref: "b"}, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		if got := refs(t, l); got != "file b done, file a done" {
			t.Errorf("after %.20q and an append: %s", torn, got)
		}
		l.close()
	}
}

func TestReadEntriesErrors(t *testing.T) {
	for text, want := range map[string]string{
		"nonsense\n":                                "line 1: invalid character",
		`{"id":"a","state":"done"}` + "\n{}\n":      "line 2: an entry without id",
		`{"id":"a","state":"perhaps"}` + "\n":       `line 1: unknown state "perhaps"`,
		`{"id":"a","state":"done","at":"x"}` + "\n": "line 1: parsing time",
	} {
		if _, err := readEntries(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadEntries(f *testing.F) {
	f.Add([]byte(`{"id":"a","kind":"file","ref":"x","state":"intent"}` + "\n" + `{"id":"a","state":"done"}` + "\n{"))
	f.Add([]byte("\x00\x00\n"))
	f.Add([]byte(`{"id":"a","state":"undone"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := readEntries(bytes.NewReader(data))
		if err != nil {
			return
		}
		if lines := bytes.Count(data, []byte("\n")); len(all) != lines {
			t.Errorf("%d entries of %d lines", len(all), lines)
		}
		seen := map[string]bool{}
		for _, e := range standing(all) {
			if e.State == Undone || e.ID == "" || seen[e.ID] {
				t.Errorf("standing has %+v", e)
			}
			seen[e.ID] = true
		}
	})
}
