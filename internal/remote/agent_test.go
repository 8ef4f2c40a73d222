package remote

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"krig/internal/agent"
)

// programs is where programs are built, removed at the end.
var programs string

func TestMain(m *testing.M) {
	var err error
	if programs, err = os.MkdirTemp("", "krig-remote-*"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(programs)
	os.Exit(code)
}

// agentBinary builds krig-agent once.
var agentBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(programs, "krig-agent")
	cmd := exec.Command("go", "build", "-o", path, "krig/cmd/krig-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// agentOver starts a real agent over a connection, with one process that would
// run for long; it returns that process.
func agentOver(t *testing.T, c *Conn) (*agent.Client, int) {
	t.Helper()
	path, err := agentBinary()
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, argv []string, in io.Reader, out, stderr io.Writer) error {
		return c.Exec(ctx, Cmd{Argv: argv, Become: true, Stdin: in, Stdout: out, Stderr: stderr})
	}
	a, err := agent.Start(limited(t, 20*time.Second), run, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() }) // an agent that is gone is said elsewhere
	pids := make(chan int, 1)
	go agent.Exec(t.Context(), a, agent.ExecSpec{Argv: []string{"sh", "-c", "echo $$; exec sleep 300"}}, func(l agent.Line) {
		var pid int
		fmt.Sscan(l.Text, &pid)
		pids <- pid
	})
	select {
	case pid := <-pids:
		return a, pid
	case <-time.After(20 * time.Second):
		t.Fatal("the process did not start")
	}
	return nil, 0
}

func TestAgentOverSSH(t *testing.T) {
	s := startSSHD(t)
	for _, tc := range []struct {
		name string
		end  func(t *testing.T, a *agent.Client, c *Conn)
	}{
		{"closed", func(t *testing.T, a *agent.Client, _ *Conn) {
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"connection closed", func(t *testing.T, _ *agent.Client, c *Conn) {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"sshd of the connection killed", func(t *testing.T, _ *agent.Client, c *Conn) {
			syscall.Kill(connectionSSHD(t, c), syscall.SIGKILL)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dialTest(t, s)
			a, pid := agentOver(t, c)
			if offset, bound, err := agent.Clock(limited(t, 10*time.Second), a); err != nil || offset.Abs() > bound {
				t.Errorf("clock: %v within %v, %v", offset, bound, err)
			}
			tc.end(t, a, c)
			eventually(t, "the agent's process is gone", func() bool { return !alive(pid) })
			<-a.Ended()
			if _, err := a.Call(t.Context(), agent.VerbClock, nil); err == nil {
				t.Error("a call succeeded after the agent's end")
			}
		})
	}
}

// connectionSSHD is the process of sshd that serves a connection.
func connectionSSHD(t *testing.T, c *Conn) int {
	t.Helper()
	out, err := c.Output(limited(t, 10*time.Second), "sh", "-c", `cut -d" " -f4 /proc/$$/stat`)
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(strings.TrimSpace(out), &pid); err != nil || pid < 2 {
		t.Fatalf("parent of a command: %q", out)
	}
	return pid
}
