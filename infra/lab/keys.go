package lab

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// sshdConfig lets the run's key in and nobody else. It lies with its keys in
// /etc/ssh of the host, whose parents only root may write to, or sshd would
// refuse the keys. PAM is left out: it would ask this machine's rules.
const sshdConfig = `Port 22
HostKey /etc/ssh/ssh_host_ed25519_key
AuthorizedKeysFile /etc/ssh/authorized_keys
AuthenticationMethods publickey
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
MaxSessions 10
MaxStartups 200:30:400
ClientAliveInterval 30
Subsystem sftp internal-sftp
PidFile none
`

// keyPair makes an ed25519 key: the private half in OpenSSH's form, the public
// half as a line of authorized_keys.
func keyPair(comment string) (private []byte, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(priv, comment)
	if err != nil {
		return nil, "", err
	}
	key, err := ssh.NewPublicKey(pub)
	if err != nil {
		return nil, "", err
	}
	return pem.EncodeToMemory(block), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// clientKey returns the public half of the run's key, which it makes when the
// run has none.
func clientKey(path string) (public string, err error) {
	if data, err := os.ReadFile(path); err == nil {
		signer, err := ssh.ParsePrivateKey(data)
		if err != nil {
			return "", fmt.Errorf("reading the run's key: %w", err)
		}
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
	}
	private, public, err := keyPair("krig")
	if err != nil {
		return "", fmt.Errorf("making the run's key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return public, writeWhole(path, private, 0o600)
}

// writeSSH fills a host's /etc/ssh and returns its public key.
func writeSSH(dir, client, host string) (public string, err error) {
	private, public, err := keyPair(host)
	if err != nil {
		return "", fmt.Errorf("making a host key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{
		{"ssh_host_ed25519_key", private, 0o600},
		{"authorized_keys", []byte(client + "\n"), 0o600},
		{"sshd_config", []byte(sshdConfig), 0o644},
	} {
		if err := writeWhole(filepath.Join(dir, f.name), f.data, f.mode); err != nil {
			return "", err
		}
	}
	return public, nil
}
