package remote

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// overBoth runs a test over a real sshd and on this machine: the same
// behaviour is asked of both.
func overBoth(t *testing.T, test func(t *testing.T, c *Conn)) {
	t.Run("ssh", func(t *testing.T) { test(t, dialTest(t, startSSHD(t))) })
	t.Run("local", func(t *testing.T) {
		c := Local()
		t.Cleanup(func() { c.Close() })
		test(t, c)
	})
}

func TestOutput(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		ctx := limited(t, 20*time.Second)
		for _, tc := range []struct {
			argv []string
			want string
		}{
			{[]string{"printf", "%s|", "a b", "", `c'd"$HOME;\`, "*"}, `a b||c'd"$HOME;\|*|`},
			{[]string{"true"}, ""},
			{[]string{"sh", "-c", "echo to stderr >&2; echo out"}, "out\n"},
		} {
			if got, err := c.Output(ctx, tc.argv...); err != nil || got != tc.want {
				t.Errorf("%q: got %q, %v; want %q", tc.argv, got, err, tc.want)
			}
		}
	})
}

func TestExitError(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		ctx := limited(t, 20*time.Second)
		for _, tc := range []struct {
			argv []string
			code int
			sig  string
			want string
		}{
			{[]string{"sh", "-c", "echo no such thing >&2; exit 3"}, 3, "", `sh -c 'echo no such thing >&2; exit 3': exit 3: no such thing`},
			{[]string{"sh", "-c", "kill -TERM $$"}, 143, "TERM", `sh -c 'kill -TERM $$': ended by SIGTERM`},
			{[]string{"no-such-program", "x"}, 127, "", `no-such-program x: exit 127: `},
		} {
			_, err := c.Output(ctx, tc.argv...)
			var exit *ExitError
			if !errors.As(err, &exit) {
				t.Errorf("%q: %v", tc.argv, err)
				continue
			}
			if exit.Code != tc.code || exit.Signal != tc.sig || !strings.HasPrefix(err.Error(), c.Host()+": "+tc.want) {
				t.Errorf("%q: %d %q %q; want %d %q %q", tc.argv, exit.Code, exit.Signal, err, tc.code, tc.sig, tc.want)
			}
		}
	})
}

func TestStreamsAndEnvironment(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		var out, stderr bytes.Buffer
		err := c.Exec(limited(t, 20*time.Second), Cmd{
			Argv: []string{"sh", "-c", `cat; printf %s "$A" >&2`}, Env: []string{`A=x 'y' $z`},
			Stdin: strings.NewReader("in"), Stdout: &out, Stderr: &stderr,
		})
		if err != nil || out.String() != "in" || stderr.String() != `x 'y' $z` {
			t.Errorf("got %q, %q, %v", out.String(), stderr.String(), err)
		}
	})
}

// alive tells whether a process is there and no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && syscall.Kill(pid, 0) == nil && !bytes.Contains(stat, []byte(") Z "))
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}

// pidWriter hands on the process ids that a command prints, one a line.
type pidWriter chan int

func (w pidWriter) Write(p []byte) (int, error) {
	for f := range strings.FieldsSeq(string(p)) {
		if pid, err := strconv.Atoi(f); err == nil {
			w <- pid
		}
	}
	return len(p), nil
}

func TestCancelEndsTheGroup(t *testing.T) {
	errStop := errors.New("stopped by the test")
	overBoth(t, func(t *testing.T, c *Conn) {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		pids := make(pidWriter, 2)
		ended := make(chan error, 1)
		go func() {
			ended <- c.Exec(ctx, Cmd{Argv: []string{"sh", "-c", `sleep 300 & echo $!; echo $$; wait`}, Stdout: pids})
		}()
		child, parent := <-pids, <-pids
		if !alive(child) || !alive(parent) {
			t.Fatal("they do not run")
		}
		cancel(errStop)
		if err := <-ended; !errors.Is(err, errStop) || !strings.Contains(err.Error(), c.Host()+": sh -c") {
			t.Errorf("got %v", err)
		}
		eventually(t, "both are gone", func() bool { return !alive(child) && !alive(parent) })
	})
}
