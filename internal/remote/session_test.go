package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestSessionsAreLimited(t *testing.T) {
	s := startTestServer(t)
	c := dialHost(t, s.host, s.dir)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if got, err := c.Output(limited(t, 60*time.Second), "sh", "-c", "sleep 0.05; echo "+fmt.Sprint(i)); err != nil || got != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: %q, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	s.with(func() {
		if s.most > callerSessions || s.most < 2 {
			t.Errorf("%d sessions were open at once, want up to %d", s.most, callerSessions)
		}
	})
}

func TestHostWithoutFreeSession(t *testing.T) {
	s := startTestServer(t)
	c := dialHost(t, s.host, s.dir)
	s.with(func() { s.full = 3 })
	if got, err := c.Output(limited(t, 20*time.Second), "echo", "x"); err != nil || got != "x\n" {
		t.Errorf("after three refusals: %q, %v", got, err)
	}
	s.with(func() { s.full = 1 << 30 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := c.Output(ctx, "echo", "x")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `b1: echo x: `) || !strings.Contains(err.Error(), "open failed") {
		t.Errorf("got %v", err)
	}
	s.with(func() { s.full = 0 })
}

func TestMaxSessions(t *testing.T) {
	c := dialTest(t, startSSHD(t, "MaxSessions 2"))
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if _, err := c.Output(limited(t, 60*time.Second), "true"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// A server that does not make commands leaders of a group is no obstacle to
// ending them.
func TestCancelWithoutLeadership(t *testing.T) {
	s := startTestServer(t)
	c := dialHost(t, s.host, s.dir)
	ctx, cancel := context.WithCancel(t.Context())
	pids := make(pidWriter, 2)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Exec(ctx, Cmd{Argv: []string{"sh", "-c", "sleep 300 & echo $! $$; wait"}, Stdout: pids})
	}()
	child, parent := <-pids, <-pids
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	eventually(t, "both are gone", func() bool { return !alive(child) && !alive(parent) })
}

func TestConnectionLostInMidCommand(t *testing.T) {
	s := startTestServer(t)
	c := dialHost(t, s.host, s.dir)
	pids := make(pidWriter, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Exec(t.Context(), Cmd{Argv: []string{"sh", "-c", "echo $$; exec sleep 300"}, Stdout: pids})
	}()
	pid := <-pids
	defer syscall.Kill(pid, syscall.SIGKILL)
	s.cut()
	if err := <-ended; !errors.Is(err, ErrLost) || !strings.HasPrefix(err.Error(), "b1: sh -c 'echo $$; exec sleep 300': the connection was lost: ") {
		t.Errorf("got %v", err)
	}
	eventually(t, "the connection is known to be broken", c.Broken)
	if _, err := c.Output(limited(t, 10*time.Second), "true"); !errors.Is(err, ErrLost) {
		t.Errorf("the next command: %v", err)
	}
	if err := c.PutBytes(limited(t, 10*time.Second), nil, "/tmp/x", 0o600); !errors.Is(err, ErrLost) {
		t.Errorf("the next put: %v", err)
	}
	if _, err := c.DialContext(limited(t, 10*time.Second), "tcp", "127.0.0.1:1"); !errors.Is(err, ErrLost) {
		t.Errorf("the next connection: %v", err)
	}
}

// A session that ends alone, as at a reboot, has no exit status.
func TestSessionWithoutStatus(t *testing.T) {
	c := dialTest(t, startSSHD(t))
	_, err := c.Output(limited(t, 20*time.Second), "sh", "-c", `kill -KILL "$(cut -d" " -f4 /proc/$$/stat)"`)
	if !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
}

// relay passes bytes between a client and a server until it is told to fall
// silent; the connections stay open.
func relay(t *testing.T, port int) (front int, silence func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	silent := false
	pass := func(to, from net.Conn) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				to.Close()
				return
			}
			mu.Lock()
			drop := silent
			mu.Unlock()
			if !drop {
				to.Write(buf[:n])
			}
		}
	}
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				a.Close()
				return
			}
			go pass(a, b)
			go pass(b, a)
		}
	}()
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port, func() {
		mu.Lock()
		defer mu.Unlock()
		silent = true
	}
}

func TestKeepaliveNoticesSilence(t *testing.T) {
	s := startTestServer(t)
	port, silence := relay(t, s.host.SSH.Port)
	w := newWays(s.dir)
	w.keepalive = 100 * time.Millisecond
	h := s.host
	h.SSH.Port = port
	c, err := w.dial(limited(t, 20*time.Second), h, standing())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pids := make(pidWriter, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Exec(t.Context(), Cmd{Argv: []string{"sh", "-c", "echo $$; exec sleep 300"}, Stdout: pids})
	}()
	pid := <-pids
	defer syscall.Kill(pid, syscall.SIGKILL)
	time.Sleep(500 * time.Millisecond) // several keepalives are answered
	if c.Broken() {
		t.Fatal("answered keepalives broke the connection")
	}
	silence()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "no answer for 300ms") {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the silence was not noticed")
	}
}
