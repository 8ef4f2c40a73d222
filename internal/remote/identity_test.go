package remote

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"krig/internal/rundir"
)

// makeKey has ssh-keygen make a key.
func makeKey(t *testing.T, kind, path, passphrase string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		missing(t, "ssh-keygen (package openssh-client)")
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-f", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// sshAgent starts a real agent, which holds the keys of the files, added by the passphrase.
func sshAgent(t *testing.T, passphrase string, files ...string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-agent"); err != nil {
		missing(t, "ssh-agent (package openssh-client)")
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "agent")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	eventually(t, "the agent answers", func() bool {
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	ask := filepath.Join(dir, "ask")
	if err := os.WriteFile(ask, []byte("#!/bin/sh\necho "+Quote(passphrase)+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_AUTH_SOCK", socket)
	for _, f := range files {
		add := exec.Command("ssh-add", "-q", f)
		add.Env = append(os.Environ(), "SSH_ASKPASS="+ask, "SSH_ASKPASS_REQUIRE=force")
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("ssh-add %s: %v: %s", f, err, out)
		}
	}
}

// crowd makes wrong keys.
func crowd(t *testing.T, n int) []string {
	t.Helper()
	dir := t.TempDir()
	var out []string
	for i := range n {
		path := filepath.Join(dir, "wrong"+string(rune('a'+i)))
		keyPair(t, path)
		out = append(out, path)
	}
	return out
}

// letIn makes a key, with a passphrase or without, and lets the server take it alone.
func letIn(t *testing.T, s *sshServer, kind, name, passphrase string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	makeKey(t, kind, path, passphrase)
	public, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "authorized_keys"), public, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func tryDial(t *testing.T, h rundir.Host, dir string) error {
	t.Helper()
	c, err := Dial(limited(t, 30*time.Second), h, dir)
	if err == nil {
		c.Close()
	}
	return err
}

// An agent with eight keys, and a server that lets three be tried: a key that
// is named is the only one.
func TestAgentWithManyKeys(t *testing.T) {
	for _, kind := range []string{"ed25519", "rsa"} {
		s := startSSHD(t, "MaxAuthTries 3")
		locked := letIn(t, s, kind, "locked", "secret words")
		sshAgent(t, "secret words", append(crowd(t, 7), locked)...)
		h := s.host
		h.SSH.Agent = true
		h.SSH.KeyFile = locked // absolute
		if err := tryDial(t, h, s.dir); err != nil {
			t.Errorf("%s: named by its file: %v", kind, err)
		}
		h.SSH.KeyFile = "locked.pub"
		if err := tryDial(t, h, s.dir); err != nil {
			t.Errorf("%s: named by its public half: %v", kind, err)
		}
		h.SSH.KeyFile = ""
		if err := tryDial(t, h, s.dir); !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), "give the file of the right key") {
			t.Errorf("%s: not named: %v", kind, err)
		}
		// A key file that is named and wrong is not made up for by the agent.
		h.SSH.KeyFile = "id"
		sshAgent(t, "secret words", locked)
		if err := tryDial(t, h, s.dir); !errors.Is(err, ErrAuth) {
			t.Errorf("%s: with a file that is refused: %v", kind, err)
		}
		h.SSH.KeyFile = ""
		if err := tryDial(t, h, s.dir); err != nil {
			t.Errorf("%s: the agent alone: %v", kind, err)
		}
	}
}

// What one host has taken is tried first at the next, and at each hop.
func TestAgentKeysThatWereTaken(t *testing.T) {
	first, strict := startSSHD(t, "MaxAuthTries 10"), startSSHD(t, "MaxAuthTries 2")
	right := letIn(t, first, "ed25519", "right", "")
	public, err := os.ReadFile(right + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(strict.dir, "authorized_keys"), public, 0o600); err != nil {
		t.Fatal(err)
	}
	sshAgent(t, "", append(crowd(t, 5), right)...)
	f := NewFleet(t.TempDir())
	defer f.Close()
	a, b := first.host, strict.host
	a.SSH.KeyFile, a.SSH.Agent = "", true
	b.Name, b.SSH.KeyFile, b.SSH.Agent = "b2", "", true
	b.SSH.Jump = &a.SSH
	f.Add(a, b)
	for _, name := range []string{"b1", "b2"} {
		if _, err := f.Conn(limited(t, 30*time.Second), name); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []string{first.dir, strict.dir} {
		if found, _ := filepath.Glob(filepath.Join(path, "agent*")); len(found) > 0 {
			t.Errorf("the agent went along: %v", found)
		}
	}
	c, err := f.Conn(limited(t, 30*time.Second), "b2")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := c.Output(limited(t, 20*time.Second), "sh", "-c", "echo forwarded to ${SSH_AUTH_SOCK:-nobody}"); err != nil || out != "forwarded to nobody\n" {
		t.Errorf("the host says %q, %v", out, err)
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	s := startSSHD(t)
	locked := letIn(t, s, "ed25519", "locked", "secret words")
	h := s.host
	check := func(what string, change func(s *rundir.SSH), want string) {
		t.Helper()
		h := h
		change(&h.SSH)
		begun := time.Now()
		if err := tryDial(t, h, s.dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v\nwant %s", what, err, want)
		}
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("%s: took %v: it was tried again", what, took)
		}
	}
	named := func(s *rundir.SSH) { s.KeyFile, s.Agent = "locked", true }
	any := func(s *rundir.SSH) { s.KeyFile, s.Agent = "", true }
	t.Setenv("SSH_AUTH_SOCK", "")
	check("a passphrase", func(s *rundir.SSH) { s.KeyFile = "locked" },
		"reading its key "+locked+": it has a passphrase, for which krig does not ask: let it be found in ssh-agent (ssh-add "+locked)
	check("neither", func(s *rundir.SSH) { s.KeyFile = "" }, "it has neither a key file nor leave to ask ssh-agent")
	check("no agent", any, "no ssh-agent runs here (SSH_AUTH_SOCK is not set); start one and give it the key: ")
	check("no agent for a named key", named, "no ssh-agent runs here (SSH_AUTH_SOCK is not set); ")
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(t.TempDir(), "gone"))
	check("an agent that is gone", any, "ssh-agent does not answer at SSH_AUTH_SOCK: dial unix ")
	sshAgent(t, "")
	check("an agent without keys", any, "ssh-agent holds no keys, or is locked: ssh-add the one for this host")
	check("an agent without the key", named, "ssh-agent does not hold the key "+locked+" (SHA256:")
}

// An agent that answers nothing does not hold a dial up beyond its context.
func TestAgentThatHangs(t *testing.T) {
	s := startSSHD(t)
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("SSH_AUTH_SOCK", socket)
	h := s.host
	h.SSH.KeyFile, h.SSH.Agent = "", true
	begun := time.Now()
	_, err = Dial(limited(t, 2*time.Second), h, s.dir)
	if err == nil || !strings.Contains(err.Error(), "asking ssh-agent for its keys: ") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
