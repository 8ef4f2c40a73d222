package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
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
			{[]string{"no-such-program", "x"}, 127, "", `no-such-program x: exit 127: sh: `},
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

func TestWhatCannotBeRun(t *testing.T) {
	c := Local()
	defer c.Close()
	for _, tc := range []struct {
		cmd  Cmd
		want string
	}{
		{Cmd{}, "no command is given"},
		{Cmd{Argv: []string{""}}, "no command is given"},
		{Cmd{Argv: []string{"echo", "a\x00b"}}, "a NUL byte cannot be passed to a command"},
		{Cmd{Argv: []string{"echo", strings.Repeat("x", 100<<10)}}, "102406 bytes of arguments: at most 102400 can be passed; use standard input"},
		{Cmd{Argv: []string{"env"}, Env: []string{"A-B=c"}}, `environment entry "A-B=c" is not of the form KEY=value`},
		{Cmd{Argv: []string{"env"}, Env: []string{"x; reboot"}}, `environment entry "x; reboot" is not of the form KEY=value`},
		{Cmd{Argv: []string{"A=b", "env"}, Env: []string{"C=d"}}, `a program named "A=b" cannot be given an environment`},
	} {
		err := c.Exec(t.Context(), tc.cmd)
		if err == nil || !strings.HasPrefix(err.Error(), "machine: ") || !strings.HasSuffix(err.Error(), ": "+tc.want) {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

func TestStubbornGroupIsKilled(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, c *Conn) {
		t.Parallel()
		ctx, cancel := context.WithCancel(context.Background())
		pids := make(pidWriter, 2)
		ended := make(chan error, 1)
		go func() {
			// The leader goes at SIGTERM, its child does not and holds the output open.
			ended <- c.Exec(ctx, Cmd{Argv: []string{"sh", "-c", `(trap '' TERM; echo $(sh -c 'echo $PPID'); exec sleep 300) & echo $$; wait`}, Stdout: pids})
		}()
		one, two := <-pids, <-pids
		begun := time.Now()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if took := time.Since(begun); took > 3*killGrace {
			t.Errorf("it took %v", took)
		}
		eventually(t, "both are gone", func() bool { return !alive(one) && !alive(two) })
	})
}

func TestCloseEndsCommands(t *testing.T) {
	for name, c := range map[string]*Conn{"ssh": dialTest(t, startSSHD(t)), "local": Local()} {
		pids := make(pidWriter, 1)
		ended := make(chan error, 1)
		go func() {
			ended <- c.Exec(t.Context(), Cmd{Argv: []string{"sh", "-c", "echo $$; exec sleep 300"}, Stdout: pids})
		}()
		pid := <-pids
		if err := c.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		if alive(pid) {
			t.Errorf("%s: the command lives on", name)
		}
		if _, err := c.Output(t.Context(), "true"); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: after Close: %v", name, err)
		}
		if err := c.Close(); err != nil || !c.Broken() {
			t.Errorf("%s: closing again: %v", name, err)
		}
	}
}

// failingWriter and failingReader fail after so many bytes.
type failingWriter struct{ left int }

var errFail = errors.New("it failed as told")

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errFail
	}
	return len(p), nil
}

type failingReader struct{ left int }

func (r *failingReader) Read(p []byte) (int, error) {
	if r.left -= len(p); r.left < 0 {
		return 0, errFail
	}
	return len(p), nil
}

func TestStreamsThatFail(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		for name, cmd := range map[string]Cmd{
			"standard output": {Argv: []string{"yes"}, Stdout: &failingWriter{1 << 20}},
			"standard error":  {Argv: []string{"sh", "-c", "yes >&2"}, Stderr: &failingWriter{1 << 20}},
			"standard input":  {Argv: []string{"cat"}, Stdin: &failingReader{1 << 20}},
		} {
			if err := c.Exec(limited(t, 30*time.Second), cmd); !errors.Is(err, errFail) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A command that does not read its input ends all the same, and so does one whose input never ends.
func TestStandardInputIsNotAwaited(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		never, w := io.Pipe()
		defer w.Close()
		for _, in := range []io.Reader{never, bytes.NewReader(make([]byte, 5<<20))} {
			if err := c.Exec(limited(t, 20*time.Second), Cmd{Argv: []string{"true"}, Stdin: in}); err != nil {
				t.Error(err)
			}
		}
	})
}

// countingWriter counts bytes and remembers the most memory in use.
type countingWriter struct {
	n    int64
	heap uint64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.n>>22 != (w.n+int64(len(p)))>>22 { // each 4 MiB
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.heap = max(w.heap, m.HeapAlloc)
	}
	w.n += int64(len(p))
	return len(p), nil
}

func TestMuchOutputNeedsLittleMemory(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		const size = 100 << 20
		var out, stderr countingWriter
		err := c.Exec(limited(t, 60*time.Second), Cmd{
			Argv:   []string{"sh", "-c", "head -c 104857600 /dev/zero; head -c 104857600 /dev/zero >&2; exit 1"},
			Stdout: &out, Stderr: &stderr,
		})
		var exit *ExitError
		if !errors.As(err, &exit) || out.n != size || stderr.n != size || len(exit.Stderr) > 10<<10 {
			t.Errorf("%d and %d bytes, %T", out.n, stderr.n, err)
		}
		if grew := max(out.heap, stderr.heap) - min(before.HeapAlloc, out.heap); grew > 30<<20 {
			t.Errorf("memory grew by %d bytes", grew)
		}
	})
}

func TestOutputKeepsItsHead(t *testing.T) {
	c := Local()
	defer c.Close()
	out, err := c.Output(limited(t, 20*time.Second), "head", "-c", "3000000", "/dev/zero")
	if err != nil || len(out) != outputLimit {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestCommandEndedBeforeItBegan(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errFail)
		if _, err := c.Output(ctx, "true"); !errors.Is(err, errFail) {
			t.Errorf("got %v", err)
		}
		if err := c.PutBytes(ctx, nil, "/tmp/krig-never", 0o600); !errors.Is(err, errFail) {
			t.Errorf("put: %v", err)
		}
	})
}

// fakeSudo puts a sudo first on the path that does as the script says.
func fakeSudo(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "sudo"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestSudoRefuses(t *testing.T) {
	data, err := os.ReadFile("testdata/62-sudo-stderr.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(data), "---\n")
	for i, want := range []string{
		"sudo refused (sudo: sorry, you must have a tty to run sudo): its settings have requiretty; remove that for this user",
		"sudo refused (sudo: a password is required): it wants a password; allow this user NOPASSWD",
		"sudo refused (bench is not in the sudoers file.  This incident will be reported.): this user has no right to it",
		"sudo refused (sudo: no tty present and no askpass program specified): it wants a password; allow this user NOPASSWD",
	} {
		fakeSudo(t, "printf %s "+Quote(cases[i])+" >&2; exit 1")
		c := newConn("b1", false, newLocalLink())
		defer c.Close()
		if _, err := c.Root(limited(t, 20*time.Second), "true"); !errors.Is(err, ErrSudo) || err.Error() != "b1: becoming root: "+want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if _, err := c.Output(limited(t, 20*time.Second), "true"); err != nil {
			t.Errorf("without becoming root: %v", err)
		}
	}
}

// A warning of sudo's is no refusal, and a command's own failure is not sudo's.
func TestSudo(t *testing.T) {
	fakeSudo(t, `echo "sudo: unable to resolve host broker-1: Name or service not known" >&2
[ "$1 $2" = "-n --" ] || exit 99
shift 2
"$@" & trap 'kill $!' TERM; wait $!; exit $?`)
	c := newConn("b1", false, newLocalLink())
	defer c.Close()
	ctx := limited(t, 20*time.Second)
	if got, err := c.Root(ctx, "printf", "%s", "it's"); err != nil || got != "it's" {
		t.Errorf("got %q, %v", got, err)
	}
	var out bytes.Buffer
	if err := c.Exec(ctx, Cmd{Argv: []string{"sh", "-c", "echo $A"}, Env: []string{"A=b c"}, Become: true, Stdout: &out}); err != nil || out.String() != "b c\n" {
		t.Errorf("environment: %q, %v", out.String(), err)
	}
	_, err := c.Root(ctx, "sh", "-c", "echo password is required >&2; exit 1")
	var exit *ExitError
	if !errors.As(err, &exit) || exit.Code != 1 {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	pids := make(pidWriter, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Exec(ctx, Cmd{Argv: []string{"sh", "-c", "echo $$; exec sleep 300"}, Become: true, Stdout: pids})
	}()
	pid := <-pids
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	eventually(t, "the command is gone", func() bool { return !alive(pid) })
}
