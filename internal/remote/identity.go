package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"krig/internal/rundir"
)

// identity is the key that a login proves itself with: that of a file, one
// that the agent holds, or any of the agent's.
type identity struct {
	signer ssh.Signer    // the file's; nil asks the agent
	named  ssh.PublicKey // the only one asked of the agent; nil is any
	path   string        // of the named one's file
}

// readIdentity reads the key file. With one that is named no other key is
// ever tried: hosts cut off whoever tries many. What only the agent can use is
// looked for there by its public half.
func readIdentity(s *rundir.SSH, keyDir string) (identity, error) {
	if s.KeyFile == "" {
		if !s.Agent {
			return identity{}, errors.New("it has neither a key file nor leave to ask ssh-agent")
		}
		return identity{}, nil
	}
	path := s.KeyFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(keyDir, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return identity{}, fmt.Errorf("reading its key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err == nil {
		return identity{signer: signer}, nil
	}
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		err = errors.New("it has a passphrase, for which krig does not ask: let it be found in ssh-agent (ssh-add " + Quote(path) + ", and ssh: {agent: true})")
	}
	if s.Agent {
		if public := publicHalf(path, data, locked); public != nil {
			return identity{named: public, path: path}, nil
		}
	}
	return identity{}, fmt.Errorf("reading its key %s: %w", path, err)
}

// publicHalf is the public key of a file whose private one cannot be used: it
// stands in it in the clear, is all there is in it, or lies beside it.
func publicHalf(path string, data []byte, locked *ssh.PassphraseMissingError) ssh.PublicKey {
	if locked != nil && locked.PublicKey != nil {
		return locked.PublicKey
	}
	if key, _, _, _, err := ssh.ParseAuthorizedKey(data); err == nil {
		return key
	}
	data, err := os.ReadFile(path + ".pub")
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(data)
	if err != nil {
		return nil
	}
	return key
}

// signers are the keys to be tried, in this order; done ends their use.
func (w *ways) signers(ctx context.Context, id identity) (signers []ssh.Signer, done func(), err error) {
	if id.signer != nil {
		return []ssh.Signer{id.signer}, func() {}, nil
	}
	conn, err := dialAgent(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	done = func() {
		stop()
		conn.Close()
	}
	all, err := agent.NewClient(conn).Signers()
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("asking ssh-agent for its keys: %w", err)
	}
	if signers, err = w.choose(all, id); err != nil {
		done()
		return nil, nil, err
	}
	return signers, done, nil
}

// dialAgent opens the user's agent. It is never forwarded to a host.
func dialAgent(ctx context.Context) (net.Conn, error) {
	const start = "start one and give it the key: eval \"$(ssh-agent)\"; ssh-add"
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, errors.New("no ssh-agent runs here (SSH_AUTH_SOCK is not set); " + start)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("ssh-agent does not answer at SSH_AUTH_SOCK: %w; %s", err, start)
	}
	return conn, nil
}

// choose keeps the named key alone; of others those first that a host has taken before.
func (w *ways) choose(all []ssh.Signer, id identity) ([]ssh.Signer, error) {
	if id.named != nil {
		for _, s := range all {
			if same(s.PublicKey(), id.named) {
				return []ssh.Signer{s}, nil
			}
		}
		return nil, fmt.Errorf("ssh-agent does not hold the key %s (%s): ssh-add it", id.path, ssh.FingerprintSHA256(id.named))
	}
	if len(all) == 0 {
		return nil, errors.New("ssh-agent holds no keys, or is locked: ssh-add the one for this host")
	}
	out := make([]ssh.Signer, len(all))
	for i, s := range all {
		out[i] = noting{s, w}
	}
	slices.SortStableFunc(out, func(a, b ssh.Signer) int { return w.rank(a.PublicKey()) - w.rank(b.PublicKey()) })
	return out, nil
}

func same(a, b ssh.PublicKey) bool { return string(a.Marshal()) == string(b.Marshal()) }

// noting remembers which key was used: one is asked to sign only when the host has said that it would do.
type noting struct {
	ssh.Signer
	ways *ways
}

func (n noting) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	n.ways.note(n.PublicKey())
	if s, ok := n.Signer.(ssh.AlgorithmSigner); ok {
		return s.SignWithAlgorithm(rand, data, algorithm)
	}
	return n.Sign(rand, data)
}

// note puts a key before all others.
func (w *ways) note(key ssh.PublicKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := string(key.Marshal())
	w.took = append([]string{name}, slices.DeleteFunc(w.took, func(k string) bool { return k == name })...)
}

// rank is a key's place among those that hosts have taken; the others come after.
func (w *ways) rank(key ssh.PublicKey) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.took, string(key.Marshal())); i >= 0 {
		return i
	}
	return len(w.took)
}
