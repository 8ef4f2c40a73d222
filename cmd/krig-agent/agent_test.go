package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"krig/internal/agent"
)

// The program itself is tested: the test binary is run again as krig-agent.
func TestMain(m *testing.M) {
	if os.Getenv("KRIG_AGENT_TEST") == "1" {
		main()
	}
	os.Exit(m.Run())
}

// started is a real agent.
type started struct {
	*agent.Client
	process chan *os.Process
}

// startAgent starts krig-agent as krig does, over pipes.
func startAgent(t testing.TB) *started {
	t.Helper()
	s := &started{process: make(chan *os.Process, 1)}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, argv []string, in io.Reader, out, stderr io.Writer) error {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "KRIG_AGENT_TEST=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stdout, cmd.Stderr = out, stderr
		w, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		s.process <- cmd.Process
		stop := context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
		defer stop()
		go func() {
			io.Copy(w, in)
			w.Close()
		}()
		return cmd.Wait()
	}
	if s.Client, err = agent.Start(t.Context(), run, self); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func runShell(t *testing.T, s *started, spec agent.ExecSpec) (out, stderr []string, end agent.ExecEnd) {
	t.Helper()
	end, err := agent.Exec(t.Context(), s.Client, spec, func(l agent.Line) {
		if l.Stderr {
			stderr = append(stderr, l.Text)
		} else {
			out = append(out, l.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return out, stderr, end
}

func TestExec(t *testing.T) {
	s := startAgent(t)
	dir := t.TempDir()
	for _, tc := range []struct {
		name        string
		spec        agent.ExecSpec
		out, stderr string // lines joined by |
		code        int
		signal      string
		limit       bool
	}{
		{"lines", agent.ExecSpec{Argv: []string{"printf", `a\n\nb c\r\nlast`}}, "a||b c|last", "", 0, "", false},
		{"both streams", agent.ExecSpec{Argv: []string{"sh", "-c", "echo o; echo e >&2; exit 3"}}, "o", "e", 3, "", false},
		{"a signal", agent.ExecSpec{Argv: []string{"sh", "-c", "kill -USR1 $$"}}, "", "", 138, "USR1", false},
		{"environment and directory", agent.ExecSpec{Argv: []string{"sh", "-c", `echo "$A"; pwd`}, Env: []string{"A=x y"}, Dir: dir}, "x y|" + dir, "", 0, "", false},
		{"standard input", agent.ExecSpec{Argv: []string{"cat"}, Stdin: []byte("one\ntwo\n")}, "one|two", "", 0, "", false},
		{"standard input unread", agent.ExecSpec{Argv: []string{"true"}, Stdin: make([]byte, 1<<20)}, "", "", 0, "", false},
		{"no standard input", agent.ExecSpec{Argv: []string{"cat"}}, "", "", 0, "", false},
		{"a limit", agent.ExecSpec{Argv: []string{"sh", "-c", "echo begun; sleep 300"}, Limit: time.Second}, "begun", "", 143, "TERM", true},
		{"not utf-8", agent.ExecSpec{Argv: []string{"printf", `a\377b\n`}}, "a\ufffdb", "", 0, "", false},
		// The pipe is held by a process that has left the group: its end is not awaited.
		{"a daemon", agent.ExecSpec{Argv: []string{"sh", "-c", "setsid sleep 300 & sleep 0.3; echo done"}}, "done", "", 0, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			begun := time.Now()
			out, stderr, end := runShell(t, s, tc.spec)
			if strings.Join(out, "|") != tc.out || strings.Join(stderr, "|") != tc.stderr {
				t.Errorf("printed %q and %q, want %q and %q", out, stderr, tc.out, tc.stderr)
			}
			if end.Code != tc.code || end.Signal != tc.signal || end.Limit != tc.limit {
				t.Errorf("ended with %d %q %t, want %d %q %t", end.Code, end.Signal, end.Limit, tc.code, tc.signal, tc.limit)
			}
			if end.Started.Before(begun) || end.Ended.Before(end.Started) || end.Ended.After(time.Now()) || end.PID == 0 {
				t.Errorf("it ran from %v to %v as %d", end.Started, end.Ended, end.PID)
			}
		})
	}
}

func TestExecCannotStart(t *testing.T) {
	s := startAgent(t)
	for _, tc := range []struct{ argv, want string }{
		{"no-such-program", `exec: starting no-such-program: exec: "no-such-program": executable file not found in $PATH`},
		{"/etc", "exec: starting /etc: fork/exec /etc: permission denied"},
		{"", "exec: no command is given"},
	} {
		_, err := agent.Exec(t.Context(), s.Client, agent.ExecSpec{Argv: strings.Fields(tc.argv)}, nil)
		if err == nil || err.Error() != tc.want {
			t.Errorf("got %v, want %s", err, tc.want)
		}
	}
}

func TestExecStampsLines(t *testing.T) {
	s := startAgent(t)
	var at []time.Time
	begun := time.Now()
	_, err := agent.Exec(t.Context(), s.Client, agent.ExecSpec{Argv: []string{"sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.2; done"}},
		func(l agent.Line) { at = append(at, l.At) })
	if err != nil || len(at) != 3 {
		t.Fatalf("%d lines, %v", len(at), err)
	}
	for i, stamp := range at {
		if i > 0 && stamp.Sub(at[i-1]) < 150*time.Millisecond {
			t.Errorf("lines %d and %d are %v apart, printed 200 ms apart", i, i+1, stamp.Sub(at[i-1]))
		}
		if stamp.Before(begun) || stamp.After(time.Now()) || stamp.Location() != time.UTC {
			t.Errorf("line %d is stamped %v", i+1, stamp)
		}
	}
}

func TestExecResourceUse(t *testing.T) {
	s := startAgent(t)
	_, _, end := runShell(t, s, agent.ExecSpec{Argv: []string{"sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"}})
	wall := end.Ended.Sub(end.Started).Seconds()
	if cpu := end.User + end.System; cpu < 0.01 || cpu > wall+0.05 {
		t.Errorf("%v CPU seconds of %v", cpu, wall)
	}
	if end.MaxRSS < 100<<10 || end.MaxRSS > 100<<20 {
		t.Errorf("%d bytes of memory", end.MaxRSS)
	}
}

func TestExecManyLines(t *testing.T) {
	s := startAgent(t)
	const want = 200_000 // several windows
	var n, wrong int
	_, err := agent.Exec(t.Context(), s.Client, agent.ExecSpec{Argv: []string{"seq", strconv.Itoa(want)}}, func(l agent.Line) {
		n++
		if l.Text != strconv.Itoa(n) {
			wrong++
		}
	})
	if err != nil || n != want || wrong > 0 {
		t.Errorf("%d lines, %d wrong, %v", n, wrong, err)
	}
}

// What a slow reader left in the pipe at the process's end is not lost.
func TestExecSlowReader(t *testing.T) {
	s := startAgent(t)
	call, err := s.Call(t.Context(), agent.VerbExec, agent.ExecSpec{Argv: []string{"seq", "120000"}})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // seq ends, or stands still at a full window and pipe
	text := 0
	for {
		m, err := call.Next(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text += strings.Count(string(m.Body), `"text"`)
	}
	if text != 120_000 {
		t.Errorf("%d lines arrived", text)
	}
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("x", lineLimit)
	for _, tc := range []struct {
		name, data string
		end        bool
		lines      []string
		rest       string
	}{
		{"nothing", "", false, nil, ""},
		{"a whole and a part", "a\nb", false, []string{"a"}, "b"},
		{"the end", "a\nb", true, []string{"a", "b"}, ""},
		{"empty lines", "\n\n", true, []string{"", ""}, ""},
		{"as long as may be", long + "\n", false, []string{long}, ""},
		{"longer", long + "yy\nz", false, []string{long, "yy"}, "z"},
		{"no line end yet", long + long + "y", false, []string{long, long}, "y"},
	} {
		lines, rest := split([]byte(tc.data), tc.end)
		if fmt.Sprintf("%q", lines) != fmt.Sprintf("%q", tc.lines) || string(rest) != tc.rest {
			t.Errorf("%s: %d lines, rest %.20q", tc.name, len(lines), rest)
		}
	}
}

// relatives are the processes that [family] starts.
type relatives struct {
	Leader   int // of the group
	Child    int // in the group
	Stubborn int // in the group, ignores SIGTERM
	Daemon   int // has left the group
}

func (r relatives) all() []int { return []int{r.Leader, r.Child, r.Stubborn, r.Daemon} }

func family(ctx context.Context, t *testing.T, s *started) (r relatives, end <-chan error) {
	t.Helper()
	got := make(chan string, 4)
	ended := make(chan error, 1)
	script := `sh -c 'echo Child $$; exec sleep 300' &
(trap '' TERM; exec sh -c 'echo Stubborn $$; exec sleep 300') &
setsid sh -c 'echo Daemon $$; exec sleep 300' &
echo Leader $$; wait`
	go func() {
		_, err := agent.Exec(ctx, s.Client, agent.ExecSpec{Argv: []string{"sh", "-c", script}}, func(l agent.Line) { got <- l.Text })
		ended <- err
	}()
	for range 4 {
		var who string
		var pid int
		select {
		case line := <-got:
			fmt.Sscan(line, &who, &pid)
		case err := <-ended:
			t.Fatalf("it has ended: %v", err)
		}
		*map[string]*int{"Leader": &r.Leader, "Child": &r.Child, "Stubborn": &r.Stubborn, "Daemon": &r.Daemon}[who] = pid
	}
	t.Cleanup(func() {
		for _, pid := range r.all() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	for _, pid := range r.all() {
		if !alive(pid) {
			t.Fatalf("one does not run: %+v", r)
		}
	}
	return r, ended
}

func expectGone(t *testing.T, pids []int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%v are gone", pids), func() bool {
		for _, pid := range pids {
			if alive(pid) {
				return false
			}
		}
		return true
	})
}

func TestLease(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(t *testing.T, s *started, p *os.Process)
	}{
		{"closed", func(t *testing.T, s *started, _ *os.Process) {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}},
		{"agent killed", func(_ *testing.T, _ *started, p *os.Process) { p.Kill() }},
		{"agent and its group killed", func(_ *testing.T, _ *started, p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }},
		{"agent terminated", func(_ *testing.T, _ *started, p *os.Process) { p.Signal(syscall.SIGTERM) }},
		{"agent hung up", func(_ *testing.T, _ *started, p *os.Process) { p.Signal(syscall.SIGHUP) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startAgent(t)
			r, ended := family(t.Context(), t, s)
			process := <-s.process
			tc.end(t, s, process)
			if err := <-ended; err == nil {
				t.Error("the call ended well")
			}
			expectGone(t, append(r.all(), process.Pid))
		})
	}
}

func TestCancelEndsTheGroup(t *testing.T) {
	errStop := errors.New("stopped by the test")
	s := startAgent(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	r, ended := family(ctx, t, s)
	cancel(errStop)
	if err := <-ended; !errors.Is(err, errStop) {
		t.Errorf("it ended with %v", err)
	}
	expectGone(t, []int{r.Leader, r.Child, r.Stubborn})
	if !alive(r.Daemon) {
		t.Error("what left the group ends with the lease, not earlier")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	expectGone(t, r.all())
}

func TestClock(t *testing.T) {
	s := startAgent(t)
	offset, bound, err := agent.Clock(t.Context(), s.Client)
	if err != nil || bound <= 0 || bound > time.Second || offset.Abs() > bound {
		t.Errorf("this machine's clock is %v ahead of itself, within %v, %v", offset, bound, err)
	}
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args        []string
		code        int
		out, stderr string
	}{
		{[]string{"version"}, 0, "krig-agent protocol 1 build unknown\n", ""},
		{nil, 2, "", "usage: krig-agent serve | version\n"},
		{[]string{"serve", "x"}, 2, "", "usage: krig-agent serve | version\n"},
		{[]string{guardCommand}, 1, "", "krig-agent: KRIG_LEASE is not set\n"},
	} {
		var out, stderr strings.Builder
		code := run(t.Context(), tc.args, strings.NewReader(""), &out, &stderr)
		if code != tc.code || out.String() != tc.out || !strings.HasPrefix(stderr.String(), tc.stderr) {
			t.Errorf("%q: %d, %q, %q", tc.args, code, out.String(), stderr.String())
		}
	}
}

// The program for hosts is static, and is built for both architectures.
func TestBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program twice")
	}
	for _, arch := range []string{"amd64", "arm64"} {
		path := filepath.Join(t.TempDir(), "krig-agent")
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", arch, err, out)
		}
		info, err := os.Stat(path)
		if err != nil || info.Size() > 20<<20 {
			t.Errorf("%s: %v, %v", arch, info.Size(), err)
		}
	}
}
