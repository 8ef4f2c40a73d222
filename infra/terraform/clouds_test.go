//go:build clouds

package terraform_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"krig/infra/child"
	"krig/infra/stack"
	"krig/infra/terraform"
	"krig/infra/tool"
	"krig/internal/rundir"
)

// things is a run with a stack of things: files in a directory of the test's.
type things struct {
	t   *testing.T
	run *rundir.Run
	dir string
}

func newThings(t *testing.T) *things {
	t.Helper()
	if _, err := tool.Terraform(t.Context(), os.Getenv(tool.Env)); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	run, err := rundir.Create(t.TempDir(), "things", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	})
	return &things{t, run, t.TempDir()}
}

func (s *things) open() stack.Stack {
	s.t.Helper()
	st, err := terraform.Open(s.run, "r")
	if err != nil {
		s.t.Fatal(err)
	}
	return st
}

// apply makes things, each by its command.
func (s *things) apply(ctx context.Context, commands map[string]string) ([]string, error) {
	out, err := s.open().Apply(ctx, stack.Input{Module: "testdata/module", Vars: map[string]any{"dir": s.dir, "things": commands}})
	if err != nil {
		return nil, err
	}
	var names []string
	if err := json.Unmarshal(out, &names); err != nil {
		s.t.Fatal(err)
	}
	return names, nil
}

func (s *things) there() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func (s *things) destroyed() {
	s.t.Helper()
	if err := s.open().Destroy(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	if left := s.there(); len(left) > 0 {
		s.t.Errorf("left are %v", left)
	}
	if known, err := s.open().List(s.t.Context()); err != nil || len(known) > 0 {
		s.t.Errorf("the state still knows %v (%v)", known, err)
	}
}

func (s *things) await(what string, there func() bool) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); !there(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("no %s", what)
		}
	}
}

// A stack grows and shrinks by what differs, and knows what it has.
func TestGrowAndShrink(t *testing.T) {
	s := newThings(t)
	if known, err := s.open().List(t.Context()); err != nil || known != nil {
		t.Errorf("before anything: %v, %v", known, err)
	}
	make1 := `echo "$NAME $(date +%N)" >"$NAME"`
	for _, want := range [][]string{{"a"}, {"a", "b", "c"}, {"a", "c"}} {
		commands := map[string]string{}
		for _, n := range want {
			commands[n] = make1
		}
		before, _ := os.ReadFile(filepath.Join(s.dir, "a")) // absent the first time
		got, err := s.apply(t.Context(), commands)
		if err != nil || !slices.Equal(got, want) || !slices.Equal(s.there(), want) {
			t.Fatalf("wanted %v, got %v, there are %v (%v)", want, got, s.there(), err)
		}
		after, err := os.ReadFile(filepath.Join(s.dir, "a"))
		if err != nil || len(before) > 0 && string(before) != string(after) {
			t.Errorf("a was made again (%v)", err)
		}
	}
	if known, err := s.open().List(t.Context()); err != nil || !slices.Equal(known, []string{`terraform_data.thing["a"]`, `terraform_data.thing["c"]`}) {
		t.Errorf("known are %q (%v)", known, err)
	}
	s.destroyed()
	s.destroyed() // again
	if err := s.open().Scrub(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(s.run.Path("infra", "terraform", "r", "*")); err != nil || len(left) != 1 || filepath.Base(left[0]) != "stack.json" {
		t.Errorf("scrubbed, there are %v (%v)", left, err)
	}
	if standing, err := s.run.Ledger.Standing(); err != nil || len(standing) > 0 {
		t.Errorf("the ledger still has %v (%v)", standing, err)
	}
}

// An output that apply does not show is asked for; what a program warns of
// before it answers is not the answer.
func TestHiddenOutput(t *testing.T) {
	s := newThings(t)
	t.Setenv("TF_CLI_CONFIG_FILE", filepath.Join(s.dir, "no-such-file"))
	out, err := s.open().Apply(t.Context(), stack.Input{Module: "testdata/hidden", Vars: map[string]any{}})
	var names []string
	if err == nil {
		err = json.Unmarshal(out, &names)
	}
	if err != nil || !slices.Equal(names, []string{"x"}) {
		t.Errorf("the output is %s (%v)", out, err)
	}
	s.destroyed()
}

// A failure names the thing and the words of what failed; what was made is
// known and goes.
func TestFailure(t *testing.T) {
	s := newThings(t)
	_, err := s.apply(t.Context(), map[string]string{"a": `touch "$NAME"`, "b": `echo 'InsufficientInstanceCapacity: none left' >&2; exit 3`})
	var e *stack.Error
	if !errors.As(err, &e) || e.Address != `terraform_data.thing["b"]` || e.Failure != stack.Capacity || !strings.Contains(e.Message, "none left") {
		t.Fatalf("the failure is %v", err)
	}
	s.destroyed()
}

// Cancelled, the program gets one interrupt and finishes what it does.
func TestInterruptedOnce(t *testing.T) {
	s := newThings(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watched := filepath.Join(t.TempDir(), "seen")
	named := filepath.Join(t.TempDir(), "tofu")
	p, err := tool.Terraform(t.Context(), os.Getenv(tool.Env))
	if err != nil {
		t.Fatal(err)
	}
	// The program's stand-in for signals counts them and passes each on.
	script := "#!/bin/bash\n[ \"$1\" = apply ] || exec " + p.Path + " \"$@\"\n" +
		p.Path + " \"$@\" & child=$!\n" +
		"trap 'echo int >>" + watched + "; kill -INT $child' INT\nwait $child; wait $child\n"
	if err := os.WriteFile(named, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tool.Env, named)
	done := make(chan error, 1)
	go func() {
		_, err := s.apply(ctx, map[string]string{"a": `touch "$NAME"; sleep 60`})
		done <- err
	}()
	s.await("a", func() bool { return len(s.there()) == 1 })
	cancel()
	select {
	case err := <-done:
		if err == nil {
			t.Error("an interrupted apply succeeded")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it does not end")
	}
	if seen, err := os.ReadFile(watched); err != nil || string(seen) != "int\n" {
		t.Errorf("it got %q (%v)", seen, err)
	}
	// What was interrupted is tainted, and goes without its own commands.
	if known, err := s.open().List(t.Context()); err != nil || !slices.Equal(known, []string{`terraform_data.thing["a"]`}) {
		t.Errorf("known are %q (%v)", known, err)
	}
	if err := s.open().Destroy(t.Context()); err != nil {
		t.Error(err)
	}
	if known, err := s.open().List(t.Context()); err != nil || len(known) > 0 {
		t.Errorf("known are still %q (%v)", known, err)
	}
}

// Killed in mid-change by no less than SIGKILL, the program leaves a stack that
// is destroyed all the same.
func TestKilled(t *testing.T) {
	s := newThings(t)
	if _, err := s.apply(t.Context(), map[string]string{"a": `touch "$NAME"`}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.apply(t.Context(), map[string]string{"a": `touch "$NAME"`, "b": `touch "$NAME"; sleep 60`})
		done <- err
	}()
	s.await("b", func() bool { return len(s.there()) == 2 })
	standing, err := s.run.Ledger.Standing()
	if err != nil || len(standing) != 1 || standing[0].Kind != rundir.Child {
		t.Fatalf("the ledger has %v (%v)", standing, err)
	}
	who, _, _ := strings.Cut(standing[0].Ref, " ")
	o, err := rundir.ParseOwner(who)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Signal(t.Context(), o, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a killed apply succeeded")
	}
	if out, err := exec.Command("pkill", "-f", s.dir).CombinedOutput(); err != nil && len(out) > 0 { // what it had started
		t.Logf("%s: %v", out, err)
	}
	if err := s.open().Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := s.there(); slices.Contains(left, "a") { // b was in no state: who knows it finds it by its label
		t.Errorf("left are %v", left)
	}
}

// Two runs of one module do not see each other, and leave the module as it was.
func TestTwoRunsOfOneModule(t *testing.T) {
	before, err := os.ReadDir("testdata/module")
	if err != nil {
		t.Fatal(err)
	}
	a, b := newThings(t), newThings(t)
	for _, s := range []*things{a, b} {
		if _, err := s.apply(t.Context(), map[string]string{"x": `touch "$NAME"`}); err != nil {
			t.Fatal(err)
		}
	}
	a.destroyed()
	if !slices.Equal(b.there(), []string{"x"}) {
		t.Errorf("the other run's things are %v", b.there())
	}
	b.destroyed()
	after, err := os.ReadDir("testdata/module")
	if err != nil || len(after) != len(before) {
		t.Errorf("the module has %d entries, had %d (%v)", len(after), len(before), err)
	}
}
