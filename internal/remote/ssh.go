package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"krig/internal/rundir"
)

const (
	// dialLimit is how long a host may take until its sshd answers.
	dialLimit = 60 * time.Second
	// handshakeLimit bounds one attempt.
	handshakeLimit = 20 * time.Second
	// refusalLimit is how long a refused login is tried again: a booting host's sshd answers
	// before the key is in its place.
	refusalLimit = 5 * time.Second
	retryFirst   = 50 * time.Millisecond
	retryMost    = 2 * time.Second
)

// Dial connects to a host; keyDir is the run directory, below which its key file lies.
// A host that does not answer yet, or drops the connection because too many
// log in, is tried again until ctx ends or 60 s have passed. A wrong host key
// is an [ErrHostKey] at once, a refused login an [ErrAuth] after 5 s. A host with
// no address is this machine.
func Dial(ctx context.Context, h rundir.Host, keyDir string) (*Conn, error) {
	if h.SSH.Address == "" {
		return newConn(h.Name, os.Geteuid() == 0, newLocalLink()), nil
	}
	addr := net.JoinHostPort(h.SSH.Address, strconv.Itoa(cmp.Or(h.SSH.Port, 22)))
	fail := func(err error) (*Conn, error) {
		return nil, &hostError{host: h.Name, doing: "connecting to " + addr, err: err}
	}
	config, err := clientConfig(h.SSH, keyDir)
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, dialLimit, fmt.Errorf("no login within %v", dialLimit))
	defer cancel()
	client, err := login(ctx, addr, config)
	if err != nil {
		return fail(err)
	}
	return newConn(h.Name, h.SSH.User == "root", newSSHLink(client, keepaliveEvery)), nil
}

// clientConfig pins the host keys and reads the key file.
func clientConfig(s rundir.SSH, keyDir string) (*ssh.ClientConfig, error) {
	path := s.KeyFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(keyDir, path)
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading its key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		return nil, fmt.Errorf("reading its key %s: %w", path, err)
	}
	pinned, err := pinnedKeys(s.HostKey)
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{
		User:              s.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signer)},
		HostKeyCallback:   pinned.check,
		HostKeyAlgorithms: pinned.algorithms(),
	}, nil
}

// hostKeys are the only keys that a host may prove itself with.
type hostKeys []ssh.PublicKey

func pinnedKeys(lines []string) (hostKeys, error) {
	if len(lines) == 0 {
		return nil, fmt.Errorf("%w: none is pinned", ErrHostKey)
	}
	var keys hostKeys
	for _, line := range lines {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("reading the pinned host key %q: %w", line, err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (k hostKeys) check(_ string, _ net.Addr, got ssh.PublicKey) error {
	for _, key := range k {
		if string(key.Marshal()) == string(got.Marshal()) {
			return nil
		}
	}
	return fmt.Errorf("%w: expected %s, got %s %s", ErrHostKey, k, got.Type(), ssh.FingerprintSHA256(got))
}

func (k hostKeys) String() string {
	var out []string
	for _, key := range k {
		out = append(out, key.Type()+" "+ssh.FingerprintSHA256(key))
	}
	return strings.Join(out, " or ")
}

// algorithms offers exactly the pinned types: a host would otherwise choose a
// key that nobody pinned.
func (k hostKeys) algorithms() []string {
	var out []string
	for _, key := range k {
		names := []string{key.Type()}
		if key.Type() == ssh.KeyAlgoRSA {
			names = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}
		for _, n := range names {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// login tries until the host lets krig in, with growing pauses.
func login(ctx context.Context, addr string, config *ssh.ClientConfig) (*ssh.Client, error) {
	pause := retryFirst
	var refused time.Time // the first refusal
	for {
		client, err := loginOnce(ctx, addr, config)
		if err == nil {
			return client, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		}
		switch classify(err) {
		case failFinal:
			return nil, err
		case failTooMany:
			return nil, fmt.Errorf("%w as %q: %w", ErrAuth, config.User, err)
		case failRefused:
			err = fmt.Errorf("%w as %q: %w", ErrAuth, config.User, err)
			if refused.IsZero() {
				refused = time.Now()
			} else if time.Since(refused) > refusalLimit {
				return nil, err
			}
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, retryMost)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w (last: %w)", context.Cause(ctx), err)
		}
	}
}

func loginOnce(ctx context.Context, addr string, config *ssh.ClientConfig) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	c, chans, reqs, err := ssh.NewClientConn(conn, addr, config)
	if !stop() && err == nil {
		c.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ssh.NewClient(c, chans, reqs), nil
}

// failure is what a failed login means for trying again.
type failure int

const (
	failFinal   failure = iota // trying again cannot help
	failNotYet                 // no sshd yet, or it dropped the connection (MaxStartups)
	failRefused                // wrong user or key, or the key is not in its place yet
	failTooMany                // the host allows fewer tries than one
)

func classify(err error) failure {
	var network net.Error
	var name *net.DNSError
	text := err.Error()
	switch {
	case errors.Is(err, ErrHostKey):
		return failFinal
	case strings.Contains(text, "Too many authentication failures"):
		return failTooMany
	case strings.Contains(text, "unable to authenticate"):
		return failRefused
	case errors.As(err, &name) && name.IsNotFound:
		return failFinal
	case errors.As(err, &network), // refused, unreachable, timed out, reset
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failNotYet
	}
	return failFinal
}
