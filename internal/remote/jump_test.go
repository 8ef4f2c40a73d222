package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"krig/internal/rundir"
)

// behind makes a host reached over another, whose key is given by its absolute path.
func behind(s, jump *sshServer) rundir.Host {
	h := s.host
	h.SSH.Jump = over(jump)
	return h
}

func over(s *sshServer) *rundir.SSH {
	ssh := s.host.SSH
	ssh.KeyFile = filepath.Join(s.dir, ssh.KeyFile)
	return &ssh
}

func TestJump(t *testing.T) {
	t.Parallel()
	host, inner, outer := startSSHD(t), startSSHD(t), startSSHD(t)
	h := behind(host, inner)
	h.SSH.Jump.Jump = over(outer)
	c := dialHost(t, h, host.dir)
	from, err := c.Output(limited(t, 20*time.Second), "sh", "-c", "echo $SSH_CONNECTION")
	if err != nil || !strings.HasSuffix(from, fmt.Sprintf(" 127.0.0.1 %d\n", host.host.SSH.Port)) {
		t.Errorf("the host says %q, %v", from, err)
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := c.PutBytes(limited(t, 20*time.Second), []byte(strings.Repeat("0123456789", 1<<16)), path, 0o600); err != nil {
		t.Error(err)
	}
	for name, s := range map[string]*sshServer{"inner": inner, "outer": outer} {
		if n := connections(t, s); n != 1 {
			t.Errorf("%d connections to the %s jump host, want 1", n, name)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for name, s := range map[string]*sshServer{"host": host, "inner": inner, "outer": outer} {
		eventually(t, name+" has no connections left", func() bool { return connections(t, s) == 0 })
	}
}

// connections counts those that a server's listener has taken.
func connections(t *testing.T, s *sshServer) int { return len(children(t, s.cmd.Process.Pid)) }

func children(t *testing.T, pid int) []int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, word := range strings.Fields(string(data)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// Every hop proves its own key, of the type that is pinned, and takes its own
// user and key; whoever is wrong is named.
func TestJumpIsVerified(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		missing(t, "ssh-keygen (package openssh-client)")
	}
	rsa := filepath.Join(t.TempDir(), "rsa")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", rsa).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err := os.ReadFile(rsa + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	host, jump := startSSHD(t), startSSHD(t, "HostKey "+rsa)
	name := fmt.Sprintf("%s@127.0.0.1:%d", jump.host.SSH.User, jump.host.SSH.Port)
	toHost := fmt.Sprintf("b1: connecting to 127.0.0.1:%d: ", host.host.SSH.Port)
	for _, tc := range []struct {
		name   string
		change func(h *rundir.Host)
		is     error
		want   string // how the error begins, after the host
	}{
		{"all right", func(*rundir.Host) {}, nil, ""},
		{"another type of the jump's keys", func(h *rundir.Host) { h.SSH.Jump.HostKey = []string{string(public)} }, nil, ""},
		{"the jump's key", func(h *rundir.Host) { h.SSH.Jump.HostKey = h.SSH.HostKey }, ErrHostKey,
			"jump host " + name + ": ssh: handshake failed: the host key is not the pinned one: expected ssh-ed25519 SHA256:"},
		{"the host's key", func(h *rundir.Host) { h.SSH.HostKey = h.SSH.Jump.HostKey }, ErrHostKey,
			"ssh: handshake failed: the host key is not the pinned one: expected ssh-ed25519 SHA256:"},
		{"none pinned", func(h *rundir.Host) { h.SSH.Jump.HostKey = nil }, ErrHostKey,
			"jump host " + name + ": the host key is not the pinned one: none is pinned"},
		{"the host's login key at the jump", func(h *rundir.Host) { h.SSH.Jump.KeyFile = filepath.Join(host.dir, "id") }, ErrAuth,
			"jump host " + name + `: the host refused the login as "`},
	} {
		h := behind(host, jump)
		tc.change(&h)
		c, err := Dial(limited(t, 30*time.Second), h, host.dir)
		if tc.is == nil {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
				continue
			}
			c.Close()
			continue
		}
		if !errors.Is(err, tc.is) || !strings.HasPrefix(err.Error(), toHost+tc.want) {
			t.Errorf("%s: %v\nwant %s%s", tc.name, err, toHost, tc.want)
		}
	}
}

func TestJumpThatDoesNotForward(t *testing.T) {
	t.Parallel()
	host, jump := startSSHD(t), startSSHD(t, "AllowTcpForwarding no")
	begun := time.Now()
	_, err := Dial(limited(t, 30*time.Second), behind(host, jump), host.dir)
	want := fmt.Sprintf("jump host %s@127.0.0.1:%d: its sshd forwards no connections (AllowTcpForwarding): ", jump.host.SSH.User, jump.host.SSH.Port)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("it took %v: it was tried again", took)
	}
}

// A host that is not up yet behind a jump host is waited for over one and the
// same connection to that.
func TestHostThatComesLateBehindAJump(t *testing.T) {
	t.Parallel()
	host, jump := startSSHD(t), startSSHD(t)
	host.stop()
	dialled := make(chan error, 1)
	go func() {
		c, err := Dial(limited(t, 30*time.Second), behind(host, jump), host.dir)
		if err == nil {
			c.Close()
		}
		dialled <- err
	}()
	eventually(t, "the jump host is logged in to", func() bool { return connections(t, jump) == 1 })
	first := children(t, jump.cmd.Process.Pid)
	select {
	case err := <-dialled:
		t.Fatalf("before it came: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	if now := children(t, jump.cmd.Process.Pid); len(now) != 1 || now[0] != first[0] {
		t.Errorf("the jump host was connected to anew: %v, then %v", first, now)
	}
	host.start(t)
	if err := <-dialled; err != nil {
		t.Error(err)
	}
}

func TestLostJumpIsNamed(t *testing.T) {
	t.Parallel()
	host, jump := startSSHD(t), startSSHD(t)
	c := dialHost(t, behind(host, jump), host.dir)
	pids := make(pidWriter, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Exec(t.Context(), Cmd{Argv: []string{"sh", "-c", "echo $$; exec sleep 300"}, Stdout: pids})
	}()
	defer syscall.Kill(<-pids, syscall.SIGKILL)
	for _, pid := range children(t, jump.cmd.Process.Pid) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	want := fmt.Sprintf("jump host %s@127.0.0.1:%d: the connection was lost: ", jump.host.SSH.User, jump.host.SSH.Port)
	if err := <-ended; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	eventually(t, "the connection is known to be broken", c.Broken)
}

func TestSilentJumpIsNamed(t *testing.T) {
	t.Parallel()
	host, jump := startTestServer(t), startSSHD(t)
	dialTest(t, jump) // a relay gives up where nobody listens yet
	for _, silent := range []string{"jump", "host"} {
		h := host.host
		h.SSH.Jump = over(jump)
		var silence func()
		if silent == "jump" {
			h.SSH.Jump.Port, silence = relay(t, jump.host.SSH.Port)
		} else {
			h.SSH.Port, silence = relay(t, host.host.SSH.Port)
		}
		w := newWays(host.dir)
		w.keepalive = 200 * time.Millisecond
		c, err := w.dial(limited(t, 20*time.Second), h, standing())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silence()
		eventually(t, "the silence is noticed", c.Broken)
		_, err = c.Output(limited(t, 10*time.Second), "true")
		if !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "no answer for 600ms") || strings.Contains(err.Error(), "jump host") != (silent == "jump") {
			t.Errorf("when the %s is silent: %v", silent, err)
		}
	}
}

func TestFleetSharesTheJump(t *testing.T) {
	t.Parallel()
	host, jump := startSSHD(t), startSSHD(t)
	f := NewFleet(host.dir)
	var names []string
	for i := range 12 {
		h := behind(host, jump)
		h.Name = fmt.Sprintf("b%d", i)
		f.Add(h)
		names = append(names, h.Name)
	}
	err := f.Each(limited(t, 60*time.Second), names, func(ctx context.Context, _ string, c *Conn) error {
		_, err := c.Output(ctx, "true")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := connections(t, jump); n != 1 {
		t.Errorf("%d connections to the jump host, want 1", n)
	}
	if n := connections(t, host); n != 12 {
		t.Errorf("%d connections to the hosts, want 12", n)
	}
	// One that leaves does not take the jump host from the others; when that is
	// lost all come back over one new connection.
	if err := f.Drop("b0"); err != nil {
		t.Error(err)
	}
	for _, pid := range children(t, jump.cmd.Process.Pid) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	b1, err := f.Conn(limited(t, 20*time.Second), "b1")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the loss is known", func() bool { return b1.Broken() || connections(t, jump) == 0 })
	eventually(t, "all answer again", func() bool {
		return f.Each(limited(t, 60*time.Second), names[1:], func(ctx context.Context, _ string, c *Conn) error {
			_, err := c.Output(ctx, "true")
			return err
		}) == nil
	})
	if n := connections(t, jump); n != 1 {
		t.Errorf("%d connections to the jump host after its loss, want 1", n)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "nothing is connected", func() bool { return connections(t, jump)+connections(t, host) == 0 })
}

// Many hosts that wait for one jump host share its refusal.
func TestFleetSharesTheJumpsFailure(t *testing.T) {
	t.Parallel()
	jump := startTestServer(t)
	jump.with(func() { jump.refuse = -1 })
	f := NewFleet(jump.dir)
	defer f.Close()
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range 8 {
		name := fmt.Sprintf("b%d", i)
		f.Add(rundir.Host{Name: name, SSH: rundir.SSH{Address: "127.0.0.1", Port: 1, User: "root", KeyFile: "id", HostKey: jump.host.SSH.HostKey, Jump: &jump.host.SSH}})
		wg.Go(func() {
			if _, err := f.Conn(limited(t, 60*time.Second), name); !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), name+": connecting to 127.0.0.1:1: jump host root@127.0.0.1:") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begun); took > 3*refusalLimit {
		t.Errorf("it took %v: one after another", took)
	}
}

func TestJumpEndsWithItsContext(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stopped by the test")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	host, jump := startSSHD(t), startSSHD(t)
	h := behind(host, jump)
	h.SSH.Port = silent.Addr().(*net.TCPAddr).Port
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { cancel(errStop) })
	begun := time.Now()
	if _, err := Dial(ctx, h, host.dir); !errors.Is(err, errStop) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	eventually(t, "the jump host is let go", func() bool { return connections(t, jump) == 0 })
}
