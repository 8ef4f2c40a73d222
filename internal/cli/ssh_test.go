package cli

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"krig/internal/rundir"
)

func TestKnownHosts(t *testing.T) {
	s := rundir.SSH{Address: "10.89.0.2", Port: 22, HostKey: []string{"ssh-ed25519 AAAAC3\n", "ecdsa-sha2 AAAAE2"}}
	if got := knownHosts(&s); got != "10.89.0.2 ecdsa-sha2 AAAAE2\n10.89.0.2 ssh-ed25519 AAAAC3\n" {
		t.Errorf("known_hosts:\n%s", got)
	}
	s.Port = 2222
	if got := knownHosts(&s); !strings.HasPrefix(got, "[10.89.0.2]:2222 ecdsa") {
		t.Errorf("known_hosts of another port:\n%s", got)
	}
	s.Address, s.Port = "fd00::2", 22
	if got := knownHosts(&s); !strings.HasPrefix(got, "fd00::2 ecdsa") {
		t.Errorf("known_hosts of IPv6:\n%s", got)
	}
}

// What ssh itself makes of the configuration.
func TestSSHConfig(t *testing.T) {
	run := &rundir.Run{Dir: "/runs/a 100% demo"}
	s := &rundir.SSH{Address: "10.0.0.5", Port: 2222, User: "ubuntu", KeyFile: "id_ed25519", HostKey: []string{"ssh-ed25519 AAAAC3"},
		Jump: &rundir.SSH{Address: "fd00::2", User: "ops", Agent: true, HostKey: []string{"ssh-ed25519 AAAAC4"}}}
	dir := t.TempDir()
	config, err := sshConfig(dir, run, s)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"host": "hostname 10.0.0.5\nport 2222\nuser ubuntu\nidentityfile /runs/a 100%% demo/id_ed25519\nidentitiesonly yes\nidentityagent none\n" +
			"stricthostkeychecking true\nglobalknownhostsfile none\nuserknownhostsfile " + dir + "/known_hosts_host\nproxyjump jump1\nforwardagent no",
		"jump1": "hostname fd00::2\nport 22\nuser ops\nidentityfile none\nidentitiesonly no\nidentityagent SSH_AUTH_SOCK\n" +
			"userknownhostsfile " + dir + "/known_hosts_jump1\nforwardagent no",
	} {
		said := sshSays(t, "-G", "-F", config, name)
		for line := range strings.Lines(want) {
			line = strings.TrimSuffix(line, "\n")
			if line == "identityagent SSH_AUTH_SOCK" { // the default: nothing is said
				if strings.Contains(said, "\nidentityagent ") {
					t.Errorf("%s has an agent of its own:\n%s", name, said)
				}
			} else if !strings.Contains("\n"+said, "\n"+line+"\n") {
				t.Errorf("%s lacks %q in:\n%s", name, line, said)
			}
		}
	}
	s.Jump.User = "x\nProxyCommand y"
	if _, err := sshConfig(dir, run, s); err == nil || !strings.Contains(err.Error(), "cannot be written down for ssh") {
		t.Errorf("a user with a line end: %v", err)
	}
}

func sshSays(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program(t, "ssh", "openssh-client"), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("ssh %q: %v: %s", args, err, &stderr)
	}
	return string(out)
}

// program finds a program; in CI one that is missing is a failure.
func program(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") != "" {
		t.Fatalf("%s (package %s) is missing", name, pkg)
	} else if err != nil {
		t.Skipf("%s (package %s) is missing", name, pkg)
	}
	return path
}

// A shell behind a jump host that takes another key and has another host key.
func TestShellBehindAJump(t *testing.T) {
	dir := t.TempDir()
	run := &rundir.Run{Dir: dir}
	host, jump := sshd(t, dir, "host"), sshd(t, t.TempDir(), "jump")
	host.KeyFile, host.Jump = "host.login", jump
	var out, stderr bytes.Buffer
	a := &app{IO: IO{In: strings.NewReader("echo $((40 + 2)) $SSH_CONNECTION\n"), Out: &out, Err: &stderr}}
	if err := a.shell(t.Context(), run, rundir.Host{Name: "b1", SSH: *host}); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if !strings.Contains(out.String(), "42 127.0.0.1 ") || !strings.Contains(out.String(), fmt.Sprintf(" 127.0.0.1 %d", host.Port)) {
		t.Errorf("printed %q", &out)
	}
	jump.HostKey = host.HostKey
	stderr.Reset()
	if err := a.shell(t.Context(), run, rundir.Host{Name: "b1", SSH: *host}); err == nil || !strings.HasPrefix(err.Error(), "ssh to b1: ") ||
		!strings.Contains(stderr.String(), "Host key verification failed") {
		t.Errorf("with another host key at the jump host: %v: %s", err, &stderr)
	}
}

// sshd starts a server for this user; its keys lie in dir.
func sshd(t *testing.T, dir, name string) *rundir.SSH {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	path := program(t, "sshd", "openssh-server")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if me.Uid == "0" {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd insists on it
			t.Fatal(err)
		}
	}
	base := filepath.Join(dir, name)
	hostKey, login := newKey(t, base), newKey(t, base+".login")
	write(t, base+".authorized", login+"\n")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	write(t, base+".config", fmt.Sprintf("ListenAddress 127.0.0.1:%d\nHostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nPidFile none\nUsePAM no\nPermitRootLogin yes\n",
		port, base, base+".authorized"))
	cmd := exec.Command(path, "-D", "-f", base+".config")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	answers(t, port)
	return &rundir.SSH{Address: "127.0.0.1", Port: port, User: me.Username, KeyFile: base + ".login", HostKey: []string{hostKey}}
}

func answers(t *testing.T, port int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			c.Close()
			return
		}
	}
	t.Fatal("sshd does not answer")
}

// newKey writes a private key and returns its public half.
func newKey(t *testing.T, path string) string {
	t.Helper()
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(priv, "")
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(pem.EncodeToMemory(block)))
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
