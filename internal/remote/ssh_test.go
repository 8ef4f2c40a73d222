package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"krig/internal/rundir"
)

func fingerprint(t *testing.T, line string) string {
	t.Helper()
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	return ssh.FingerprintSHA256(key)
}

func TestHostKeyIsPinned(t *testing.T) {
	s := startTestServer(t)
	other := keyPair(t, filepath.Join(t.TempDir(), "other"))
	right := s.host.SSH.HostKey
	for _, tc := range []struct {
		name   string
		pinned []string
		want   string // "" succeeds
	}{
		{"right", right, ""},
		{"one of two", append([]string{other}, right...), ""},
		{"wrong", []string{other}, "the host key is not the pinned one: expected ssh-ed25519 " + fingerprint(t, other) + ", got ssh-ed25519 " + fingerprint(t, right[0])},
		{"none", nil, "the host key is not the pinned one: none is pinned"},
	} {
		h := s.host
		h.SSH.HostKey = tc.pinned
		begun := time.Now()
		c, err := Dial(limited(t, 20*time.Second), h, s.dir)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.name, err)
				continue
			}
			c.Close()
			continue
		}
		if !errors.Is(err, ErrHostKey) || !strings.HasPrefix(err.Error(), "b1: connecting to 127.0.0.1:") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: took %v: it was tried again", tc.name, took)
		}
	}
}

// A server with several keys proves itself with the pinned one, whichever
// this client would have liked best.
func TestPinnedTypeIsOffered(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		missing(t, "ssh-keygen (package openssh-client)")
	}
	dir := t.TempDir()
	var lines []string
	pinned := map[string]string{}
	for _, kind := range []string{"rsa", "ecdsa"} {
		path := filepath.Join(dir, kind)
		if out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-N", "", "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		public, err := os.ReadFile(path + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		pinned[kind] = string(public)
		lines = append(lines, "HostKey "+path)
	}
	s := startSSHD(t, lines...)
	pinned["ed25519"] = s.host.SSH.HostKey[0]
	for kind, key := range pinned {
		h := s.host
		h.SSH.HostKey = []string{key}
		c, err := Dial(limited(t, 20*time.Second), h, s.dir)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		c.Close()
	}
}

func TestRefusedLogin(t *testing.T) {
	t.Parallel()
	s := startTestServer(t)
	s.with(func() { s.refuse = -1 })
	begun := time.Now()
	_, err := Dial(limited(t, 30*time.Second), s.host, s.dir)
	if !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), `the host refused the login as "root"`) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took < refusalLimit || took > 4*refusalLimit {
		t.Errorf("it took %v", took)
	}
	s.with(func() {
		if s.logins > 12 {
			t.Errorf("%d logins", s.logins)
		}
	})
}

func TestKeyThatComesLate(t *testing.T) {
	t.Parallel()
	s := startTestServer(t)
	s.with(func() { s.refuse = 3 })
	dialHost(t, s.host, s.dir)
}

func dialHost(t *testing.T, h rundir.Host, dir string) *Conn {
	t.Helper()
	c, err := Dial(limited(t, 30*time.Second), h, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestDroppedLogins(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "Exceeded MaxStartups\r\n", "Not allowed at this time\r\n"} {
		s := startTestServer(t)
		s.with(func() { s.drop, s.dropText = 4, text })
		dialHost(t, s.host, s.dir)
		s.with(func() {
			if s.logins != 5 {
				t.Errorf("%q: %d logins, want 5", text, s.logins)
			}
		})
	}
}

func TestMaxStartups(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "MaxStartups 2:90:4")
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			c, err := Dial(limited(t, 60*time.Second), s.host, s.dir)
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	wg.Wait()
}

func TestHostThatComesLate(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	s.stop()
	dialled := make(chan error, 1)
	go func() {
		c, err := Dial(limited(t, 30*time.Second), s.host, s.dir)
		if err == nil {
			c.Close()
		}
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatalf("before it came: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	s.start(t)
	if err := <-dialled; err != nil {
		t.Error(err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	t.Parallel()
	errStop := errors.New("stopped by the test")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // connects and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	dir := t.TempDir()
	key := writeKeys(t, dir)
	for name, port := range map[string]int{"nobody listens": freePort(t), "no banner": silent.Addr().(*net.TCPAddr).Port} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(errStop) })
		h := rundir.Host{Name: "b1", SSH: rundir.SSH{Address: "127.0.0.1", Port: port, User: "root", KeyFile: "id", HostKey: []string{key}}}
		begun := time.Now()
		_, err := Dial(ctx, h, dir)
		if !errors.Is(err, errStop) || !strings.HasPrefix(err.Error(), fmt.Sprintf("b1: connecting to 127.0.0.1:%d: ", port)) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
}

func TestDialBadKeyFile(t *testing.T) {
	dir := t.TempDir()
	key := writeKeys(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "bad"), []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"none": "reading its key: open " + dir + "/none: no such file or directory",
		"bad":  "reading its key " + dir + "/bad: ssh: no key found",
	} {
		h := rundir.Host{Name: "b1", SSH: rundir.SSH{Address: "127.0.0.1", Port: 1, User: "root", KeyFile: file, HostKey: []string{key}}}
		if _, err := Dial(t.Context(), h, dir); err == nil || err.Error() != "b1: connecting to 127.0.0.1:1: "+want {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// Texts as they were seen, and what they mean for trying again.
func TestClassify(t *testing.T) {
	data, err := os.ReadFile("testdata/58-ssh-errors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for line := range strings.Lines(string(data)) {
		number, text, _ := strings.Cut(strings.TrimSpace(line), "\t")
		texts[number] = text
	}
	address := func(port int, last byte) *net.TCPAddr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, last), Port: port} }
	handshake := func(err error) error { return fmt.Errorf("ssh: handshake failed: %w", err) }
	for _, tc := range []struct {
		number string
		err    error
		want   failure
	}{
		{"2", handshake(&net.OpError{Op: "read", Net: "tcp", Source: address(50912, 5), Addr: address(22, 11),
			Err: os.NewSyscallError("read", syscall.ECONNRESET)}), failNotYet},
		{"5", errors.New(texts["5"]), failFinal},
		{"6", errors.New(texts["6"]), failTooMany},
		{"7", io.EOF, failNotYet},
		{"8", &net.OpError{Op: "dial", Net: "tcp", Addr: address(22, 11), Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, failNotYet},
		{"9", &net.OpError{Op: "dial", Net: "tcp", Addr: address(22, 11), Err: os.ErrDeadlineExceeded}, failNotYet},
		{"11", errors.New(texts["11"]), failRefused},
		{"", handshake(fmt.Errorf("%w: expected", ErrHostKey)), failFinal},
		{"", handshake(errors.New("ssh: overflow reading version string")), failFinal},
		{"", &net.DNSError{Err: "no such host", Name: "b1", IsNotFound: true}, failFinal},
		{"", &net.DNSError{Err: "server misbehaving", Name: "b1", IsTemporary: true}, failNotYet},
	} {
		if text := texts[tc.number]; tc.number != "" && tc.err.Error() != text {
			t.Errorf("%s: the error reads %q, the case %q", tc.number, tc.err, text)
		}
		if got := classify(tc.err); got != tc.want {
			t.Errorf("%s %v: got %d, want %d", tc.number, tc.err, got, tc.want)
		}
	}
}

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
	config, err := clientConfig(s.host.SSH, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	client, err := loginOnce(limited(t, 20*time.Second), fmt.Sprintf("127.0.0.1:%d", port), config)
	if err != nil {
		t.Fatal(err)
	}
	c := newConn("b1", true, newSSHLink(client, 100*time.Millisecond))
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
