package child_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"krig/infra/child"
	"krig/internal/rundir"
)

func newRun(t *testing.T) *rundir.Run {
	t.Helper()
	run, err := rundir.Create(t.TempDir(), "child", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	})
	return run
}

func TestCommand(t *testing.T) {
	file, err := child.Memory("input")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("inherited"); err != nil {
		t.Fatal(err)
	}
	run := newRun(t)
	c := child.Command{Limit: time.Minute, Env: []string{"KRIG_WORD=given"}, Files: []*os.File{file}, Ledger: run.Ledger, Dir: "/"}
	c.Argv = []string{"sh", "-c", `echo $KRIG_WORD; pwd; cat /proc/self/fd/3; ps -o pgid= -p $$ | grep -qw $$ && echo " alone"`}
	if out, err := c.Run(t.Context()); err != nil || out != "given\n/\ninherited alone\n" {
		t.Errorf("it said %q (%v)", out, err)
	}
	c.Argv = []string{"sh", "-c", "echo why >&2; exit 3"}
	if _, err := c.Run(t.Context()); err == nil || err.Error() != "sh -c: exit status 3: why" {
		t.Errorf("a failure is %v", err)
	}
	c.Argv = []string{"krig-no-such-program"}
	if _, err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a program that is not there: %v", err)
	}
	if standing, err := run.Ledger.Standing(); err != nil || len(standing) > 0 {
		t.Errorf("the ledger still has %v (%v)", standing, err)
	}
}

// A cancelled context ends no command in mid-change, but begins none either;
// the limit does end it.
func TestCommandEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := child.Command{Limit: time.Minute, Argv: []string{"sh", "-c", "sleep 0.3; echo done"}}
	time.AfterFunc(100*time.Millisecond, cancel)
	if out, err := c.Run(ctx); err != nil || out != "done\n" {
		t.Errorf("cancelled in between: %q (%v)", out, err)
	}
	if _, err := c.Run(ctx); err == nil {
		t.Error("a command was begun after the end")
	}
	c = child.Command{Limit: 100 * time.Millisecond, Argv: []string{"sleep", "60"}}
	begin := time.Now()
	if _, err := c.Run(t.Context()); err == nil || time.Since(begin) > 8*time.Second {
		t.Errorf("beyond its limit: %v after %v", err, time.Since(begin))
	}
}

// What a dead krig left running is ended by its entry: asked first, then killed;
// another process of the same number is not touched.
func TestEndEntry(t *testing.T) {
	for _, script := range []string{"echo; exec sleep 60", "trap '' TERM; echo; while :; do sleep 0.1; done"} {
		cmd := exec.Command("sh", "-c", script)
		ready, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = ready.Read(make([]byte, 1))
		}
		if err != nil {
			t.Fatal(err)
		}
		run := newRun(t)
		entry, err := run.Ledger.Started(cmd.Process.Pid, "sh -c")
		if err != nil {
			t.Fatal(err)
		}
		o, err := rundir.OwnerOf(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		other := o
		other.Start++
		if !child.EntryAlive(entry.Ref) || child.EntryAlive(other.String()+" sh -c") {
			t.Errorf("%s: who is alive?", script)
		}
		if err := child.EndEntry(t.Context(), other.String()+" sh -c"); err != nil || !o.Alive() {
			t.Errorf("%s: another's entry ended it (%v)", script, err)
		}
		if err := child.EndEntry(t.Context(), entry.Ref); err != nil || o.Alive() {
			t.Errorf("%s goes on (%v)", script, err)
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == 0 {
			t.Errorf("%s ended by itself (%v)", script, err)
		}
	}
	if err := child.EndEntry(t.Context(), "nonsense"); err == nil {
		t.Error("an entry without identity is ended")
	}
}

func TestMissing(t *testing.T) {
	got := child.Missing(
		child.Program{Name: "sh", Pkg: "dash"},
		child.Program{Name: "krig-no-such", Paths: []string{"/proc/self/exe"}, Pkg: "elsewhere"},
		child.Program{Name: "krig-no-such", Paths: []string{"/krig-no-such"}, Pkg: "such"},
	)
	if len(got) != 1 || got[0] != (child.Lack{What: "krig-no-such is not installed", Remedy: "apt-get install such"}) {
		t.Errorf("missing are %+v", got)
	}
}
