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
		{"", handshake(fmt.Errorf("%w: expected", ErrHostKey)), failHostKey},
		{"", handshake(errors.New("ssh: overflow reading version string")), failFinal},
		{"", &net.DNSError{Err: "no such host", Name: "b1", IsNotFound: true}, failName},
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
