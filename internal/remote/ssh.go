package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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
	// bootFirst and bootMost are the pauses while a host boots. A refused login
	// waits for the longer one at once: sshd shuts out for 5 s a failure whoever fails more often.
	bootFirst = 250 * time.Millisecond
	bootMost  = 5 * time.Second
)

// Dial connects to a host; keyDir is the run directory, below which key files
// lie that have no absolute path. Jump hosts on the way are logged in to and
// verified like the host itself.
// A host that does not answer yet, or drops the connection because too many
// log in, is tried again until ctx ends or 60 s have passed. A wrong host key
// is an [ErrHostKey] at once, a refused login an [ErrAuth] after 5 s. A host with
// no address is this machine.
func Dial(ctx context.Context, h rundir.Host, keyDir string) (*Conn, error) {
	return newWays(keyDir).dial(ctx, h, standing())
}

// DialBooting is [Dial] for a host that has only just been made: until limit
// has passed, a host that is not there, a host key that is not the pinned one
// and a refused login are all taken for a boot that is not done. Whatever the
// last of them was is then the error, with what to do. The same goes for the jump hosts.
// Nothing but the key exchange is ever begun with a host that has another key.
func DialBooting(ctx context.Context, h rundir.Host, keyDir string, limit time.Duration) (*Conn, error) {
	return newWays(keyDir).dial(ctx, h, booting(limit))
}

// patience is how long, and how often, failures that may pass are tried again.
type patience struct {
	limit       time.Duration // for all of it
	refused     time.Duration // for refused logins
	boots       bool          // host keys and names may still become right
	first, most time.Duration // pauses
}

func standing() patience {
	return patience{limit: dialLimit, refused: refusalLimit, first: retryFirst, most: retryMost}
}

func booting(limit time.Duration) patience {
	return patience{limit: limit, refused: limit, boots: true, first: bootFirst, most: bootMost}
}

func (w *ways) dial(ctx context.Context, h rundir.Host, p patience) (*Conn, error) {
	if h.SSH.Address == "" {
		return newConn(h.Name, os.Geteuid() == 0, newLocalLink()), nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, tooLong{p})
	defer cancel()
	link, err := w.login(ctx, &h.SSH, p)
	if err != nil {
		return nil, &hostError{host: h.Name, doing: "connecting to " + addrOf(&h.SSH), err: err}
	}
	link.again = func(ctx context.Context) (*sshLink, error) { return w.login(ctx, &h.SSH, standing()) }
	return newConn(h.Name, h.SSH.User == "root", link), nil
}

func addrOf(s *rundir.SSH) string {
	return net.JoinHostPort(s.Address, strconv.Itoa(cmp.Or(s.Port, 22)))
}

// tooLong is the end of patience.
type tooLong struct{ patience }

func (t tooLong) Error() string { return fmt.Sprintf("no login within %v", t.limit) }

// door is where a login is tried, and with what.
type door struct {
	addr, user string
	keys       hostKeys
	id         identity
}

func (w *ways) door(s *rundir.SSH) (*door, error) {
	id, err := readIdentity(s, w.keyDir)
	if err != nil {
		return nil, err
	}
	keys, err := pinnedKeys(s.HostKey)
	if err != nil {
		return nil, err
	}
	return &door{addr: addrOf(s), user: s.User, keys: keys, id: id}, nil
}

// login tries until the host lets krig in, with growing pauses.
func (w *ways) login(ctx context.Context, s *rundir.SSH, p patience) (*sshLink, error) {
	to, err := w.door(s)
	if err != nil {
		return nil, err
	}
	via := &passage{ways: w, through: s.Jump, patience: p}
	tries := &tries{patience: p, user: s.User, pause: p.first}
	for {
		client, err := w.attempt(ctx, to, via)
		if err == nil {
			return newSSHLink(client, w.keepalive, via), nil
		}
		if err = tries.again(ctx, err); err != nil {
			via.leave()
			return nil, err
		}
	}
}

// finalError is a failure that has been tried again already, or cannot pass.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// attempt tries once.
func (w *ways) attempt(ctx context.Context, to *door, via *passage) (*ssh.Client, error) {
	if err := via.enter(ctx); err != nil {
		return nil, finalError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	signers, done, err := w.signers(ctx, to.id)
	if err != nil {
		return nil, finalError{err}
	}
	defer done()
	conn, err := via.dial(ctx, to.addr)
	if err != nil {
		return nil, err
	}
	return handshake(ctx, conn, to, signers)
}

// handshake logs in over a connection, which it closes when it fails. The host
// has proved its key before anything of the login's is sent.
func handshake(ctx context.Context, conn net.Conn, to *door, signers []ssh.Signer) (*ssh.Client, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	c, chans, reqs, err := ssh.NewClientConn(conn, to.addr, &ssh.ClientConfig{
		User:              to.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signers...)},
		HostKeyCallback:   to.keys.check,
		HostKeyAlgorithms: to.keys.algorithms(),
	})
	if !stop() && err == nil {
		c.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, to.keys.explain(err)
	}
	return ssh.NewClient(c, chans, reqs), nil
}

// tries decides what failures mean.
type tries struct {
	patience
	user  string
	pause time.Duration
	since time.Time // of the first refusal
	last  error     // the last failure that was not ctx's end
}

// again waits for the next attempt; its error ends them.
func (t *tries) again(ctx context.Context, err error) error {
	var final finalError
	if errors.As(err, &final) {
		return final.error
	}
	if ctx.Err() != nil {
		return t.ended(ctx, cmp.Or(t.last, err))
	}
	kind := classify(err)
	switch kind {
	case failRefused:
		err = fmt.Errorf("%w as %q: %w", ErrAuth, t.user, err)
	case failTooMany:
		err = fmt.Errorf("%w as %q: %w; give the file of the right key, so that no other of ssh-agent's is tried", ErrAuth, t.user, err)
	}
	if !t.passes(kind) {
		return err
	}
	t.last = err
	pause := t.pause
	if t.boots && kind == failRefused {
		pause = t.most
	}
	t.pause = min(2*t.pause, t.most)
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return t.ended(ctx, err)
	}
}

// passes tells whether a failure may pass.
func (t *tries) passes(kind failure) bool {
	switch kind {
	case failNotYet:
		return true
	case failHostKey, failName:
		return t.boots
	case failRefused:
		if t.since.IsZero() {
			t.since = time.Now()
		}
		return time.Since(t.since) <= t.refused
	}
	return false
}

// ended is the error when ctx ends; at the end of patience with a boot it says what to do.
func (t *tries) ended(ctx context.Context, last error) error {
	cause := context.Cause(ctx)
	err := fmt.Errorf("%w (last: %w)", cause, last)
	var long tooLong
	if errors.As(cause, &long) && t.boots {
		err = fmt.Errorf("%w; %s", err, advice(last))
	}
	return err
}

// advice says where to look when a host did not come up.
func advice(last error) string {
	const console = "read the host's console, or its /var/log/cloud-init-output.log"
	switch {
	case errors.Is(last, ErrHostKey):
		return "its first boot did not put that host key in its place, or another machine has the address: " + console
	case errors.Is(last, ErrAuth):
		return "its first boot did not put the key in its place, or the user is another: " + console
	}
	return "see that it has started and that firewalls let this machine reach the port: " + console
}

// failure is what a failed login means for trying again.
type failure int

const (
	failFinal   failure = iota // trying again cannot help
	failNotYet                 // no sshd yet, or it dropped the connection (MaxStartups)
	failRefused                // wrong user or key, or the key is not in its place yet
	failTooMany                // the host allows fewer tries than there are keys
	failHostKey                // another host key, or one of another type
	failName                   // its name is not known
)

func classify(err error) failure {
	var network net.Error
	var name *net.DNSError
	var channel *ssh.OpenChannelError
	text := err.Error()
	switch {
	case errors.Is(err, ErrHostKey):
		return failHostKey
	case strings.Contains(text, "Too many authentication failures"):
		return failTooMany
	case strings.Contains(text, "unable to authenticate"):
		return failRefused
	case errors.As(err, &name) && name.IsNotFound, strings.Contains(text, "Name or service not known"):
		return failName
	case errors.As(err, &channel): // the jump host cannot reach it
		if channel.Reason == ssh.ConnectionFailed || channel.Reason == ssh.ResourceShortage {
			return failNotYet
		}
		return failFinal
	case errors.As(err, &network), // refused, unreachable, timed out, reset
		errors.Is(err, ErrLost),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe),
		errors.Is(err, net.ErrClosed), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failNotYet
	}
	return failFinal
}
