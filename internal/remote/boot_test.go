package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// otherKey is a host key that nobody pinned.
func otherKey(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other")
	public := keyPair(t, path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return signer, public
}

// A host that boots: nobody listens, then its own sshd key answers, then the
// login is refused, then all is well.
func TestBootingHost(t *testing.T) {
	t.Parallel()
	s := startTestServer(t)
	other, _ := otherKey(t)
	s.with(func() { s.drop, s.wrong, s.other, s.refuse = 2, 2, other, 1 })
	c, err := DialBooting(limited(t, 60*time.Second), s.host, s.dir, 50*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.Output(limited(t, 20*time.Second), "echo", "x"); err != nil || got != "x\n" {
		t.Errorf("got %q, %v", got, err)
	}
	s.with(func() {
		if s.logins != 6 {
			t.Errorf("%d logins, want 6", s.logins)
		}
		if s.asked != 2 {
			t.Errorf("%d keys were shown, want 2: the refused and the taken one", s.asked)
		}
	})
}

func TestBootThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	other, otherPublic := otherKey(t)
	for _, tc := range []struct {
		name   string
		set    func(s *testServer)
		is     error
		want   []string
		logins int // at most
	}{
		{"nobody answers", func(s *testServer) { s.drop = 1 << 30 }, nil,
			[]string{"(last: ssh: handshake failed: ", "; see that it has started and that firewalls let this machine reach the port: "}, 6},
		{"another host key", func(s *testServer) { s.wrong, s.other = 1<<30, other }, ErrHostKey,
			[]string{", got ssh-ed25519 " + fingerprint(t, otherPublic) + ")",
				"; its first boot did not put that host key in its place, or another machine has the address: read the host's console"}, 6},
		{"a refused login", func(s *testServer) { s.refuse = -1 }, ErrAuth,
			[]string{`(last: the host refused the login as "root": `, "; its first boot did not put the key in its place, or the user is another: "}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startTestServer(t)
			s.with(func() { tc.set(s) })
			begun := time.Now()
			_, err := DialBooting(t.Context(), s.host, s.dir, 3*time.Second)
			if err == nil || tc.is != nil && !errors.Is(err, tc.is) {
				t.Fatalf("got %v", err)
			}
			want := append(tc.want, fmt.Sprintf("b1: connecting to 127.0.0.1:%d: no login within 3s ", s.host.SSH.Port))
			if tc.is == ErrHostKey {
				want = append(want, "expected ssh-ed25519 "+fingerprint(t, s.host.SSH.HostKey[0]))
			}
			for _, w := range want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %v\nwhich lacks %q", err, w)
				}
			}
			if took := time.Since(begun); took < 3*time.Second || took > 6*time.Second {
				t.Errorf("it took %v", took)
			}
			s.with(func() {
				if s.logins > tc.logins || s.logins == 0 {
					t.Errorf("%d logins in 3 s, want at most %d", s.logins, tc.logins)
				}
				if tc.is != ErrAuth && s.asked != 0 {
					t.Errorf("%d keys were shown to a host that proved nothing", s.asked)
				}
			})
		})
	}
}

func TestBootIsCancelled(t *testing.T) {
	t.Parallel()
	s := startTestServer(t)
	s.with(func() { s.drop = 1 << 30 })
	errStop := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(500*time.Millisecond, func() { cancel(errStop) })
	_, err := DialBooting(ctx, s.host, s.dir, time.Minute)
	if !errors.Is(err, errStop) || strings.Contains(err.Error(), "console") {
		t.Errorf("got %v", err)
	}
}

// A real sshd whose only key is of another type than the pinned one, until its first boot is done.
func TestBootingHostOfAnotherKeyType(t *testing.T) {
	t.Parallel()
	s := startSSHD(t)
	pinned := s.host.SSH.HostKey
	dir := filepath.Join(s.dir, "host")
	keep, err := os.ReadFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	makeKey(t, "ecdsa", dir, "")
	s.start(t)
	if _, err := Dial(limited(t, 20*time.Second), s.host, s.dir); !errors.Is(err, ErrHostKey) ||
		!strings.Contains(err.Error(), "expected ssh-ed25519 "+fingerprint(t, pinned[0])+", the host has only ecdsa-sha2-nistp256") {
		t.Errorf("a standing host: %v", err)
	}
	dialled := make(chan error, 1)
	go func() {
		c, err := DialBooting(limited(t, 40*time.Second), s.host, s.dir, 30*time.Second)
		if err == nil {
			c.Close()
		}
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatalf("before its key came: %v", err)
	case <-time.After(time.Second):
	}
	s.stop()
	if err := os.WriteFile(dir, keep, 0o600); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	if err := <-dialled; err != nil {
		t.Error(err)
	}
}

// A jump host that has only just been made boots like the host behind it.
func TestBootingJump(t *testing.T) {
	t.Parallel()
	jump := startTestServer(t)
	other, _ := otherKey(t)
	jump.with(func() { jump.wrong, jump.other = 1<<30, other })
	h := jump.host
	h.SSH.Jump = &jump.host.SSH
	_, err := DialBooting(t.Context(), h, jump.dir, 2*time.Second)
	if !errors.Is(err, ErrHostKey) || !strings.Contains(err.Error(), ": jump host root@127.0.0.1:") || strings.Count(err.Error(), "no login within 2s") != 1 {
		t.Errorf("got %v", err)
	}
}
