package remote

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	mrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"krig/internal/rundir"
)

// keyPair is a fresh Ed25519 key: its file, and its public half in authorized_keys form.
func keyPair(t testing.TB, path string) (public string) {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// sshServer is a real OpenSSH server on a free port of loopback.
type sshServer struct {
	host rundir.Host
	dir  string // the key directory, which is the server's too
	cmd  *exec.Cmd
	log  *bytes.Buffer
}

// startSSHD starts sshd for the user that runs the test, with further lines of configuration.
func startSSHD(t testing.TB, lines ...string) *sshServer {
	t.Helper()
	bin := "/usr/sbin/sshd"
	if _, err := os.Stat(bin); err != nil {
		missing(t, "sshd (package openssh-server)")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if me.Uid == "0" {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd insists on it
			t.Fatal(err)
		}
	}
	s := &sshServer{dir: t.TempDir(), log: &bytes.Buffer{}}
	hostKey := writeKeys(t, s.dir)
	s.host = rundir.Host{Name: "b1", SSH: rundir.SSH{
		Address: "127.0.0.1", Port: freePort(t), User: me.Username, KeyFile: "id", HostKey: []string{hostKey},
	}}
	s.configure(t, lines)
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

// writeKeys makes the host's and the login's keys.
func writeKeys(t testing.TB, dir string) (hostKey string) {
	hostKey = keyPair(t, filepath.Join(dir, "host"))
	login := keyPair(t, filepath.Join(dir, "id"))
	if err := os.WriteFile(filepath.Join(dir, "authorized_keys"), []byte(login+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return hostKey
}

func (s *sshServer) configure(t testing.TB, lines []string) {
	config := slices.Concat(lines, []string{ // the first mention of a keyword counts
		fmt.Sprintf("ListenAddress 127.0.0.1:%d", s.host.SSH.Port),
		"HostKey " + filepath.Join(s.dir, "host"),
		"AuthorizedKeysFile " + filepath.Join(s.dir, "authorized_keys"),
		"StrictModes no", // the folder of a test lies below one that everybody may write
		"PidFile none", "UsePAM no", "PermitRootLogin yes",
		"Subsystem sftp internal-sftp",
	})
	path := filepath.Join(s.dir, "sshd_config")
	if err := os.WriteFile(path, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *sshServer) start(t testing.TB) {
	t.Helper()
	s.cmd = exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(s.dir, "sshd_config"))
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// stop ends the listener; connections live on in processes of their own.
func (s *sshServer) stop() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// freePort is one that the kernel gives to nobody who asks for any.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 10000 + mrand.IntN(20000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// missing skips for want of a real part; in CI that is a failure.
func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is missing", what)
	}
	t.Skipf("%s is missing", what)
}

func limited(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func dialTest(t testing.TB, s *sshServer) *Conn {
	t.Helper()
	c, err := Dial(limited(t, 30*time.Second), s.host, s.dir)
	if err != nil {
		t.Fatalf("%v\nsshd: %s", err, s.log)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
