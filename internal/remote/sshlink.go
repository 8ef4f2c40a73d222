package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

const (
	keepaliveEvery = 5 * time.Second
	keepaliveLost  = 3 // unanswered ones after which the connection is dead
	// sessionLimit is how long a host that has no session free is asked again.
	sessionLimit = 15 * time.Second
)

// lead makes the command the leader of a process group: sshd has mostly done
// so, and then setsid would only fork.
const lead = `read -r a b c d g r </proc/$$/stat; l=; [ "$g" = "$$" ] || l=setsid; exec $l "$@"`

// sshLink is a connection to a host's sshd.
type sshLink struct {
	client *ssh.Client
	dead   chan struct{} // closed when the connection has ended
	wg     sync.WaitGroup

	mu  sync.Mutex
	why error // what broke the connection
}

func newSSHLink(client *ssh.Client, keepalive time.Duration) *sshLink {
	l := &sshLink{client: client, dead: make(chan struct{})}
	l.wg.Go(func() {
		l.blame(client.Wait())
		close(l.dead)
	})
	l.wg.Go(func() { l.keepAlive(keepalive) })
	return l
}

// blame keeps the first reason.
func (l *sshLink) blame(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		l.why = err
	}
}

func (l *sshLink) lost() <-chan struct{} { return l.dead }

func (l *sshLink) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		return ErrLost
	}
	return fmt.Errorf("%w: %w", ErrLost, l.why)
}

func (l *sshLink) close() error {
	l.blame(net.ErrClosed)
	err := l.client.Close()
	l.wg.Wait()
	return err
}

// keepAlive notices a host that is gone without a word, and keeps firewalls
// from forgetting the connection.
func (l *sshLink) keepAlive(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-l.dead:
			return
		}
		answered := make(chan struct{})
		go func() {
			// A refusal is an answer too; an error ends the connection by itself.
			_, _, _ = l.client.SendRequest("keepalive@openssh.com", true, nil)
			close(answered)
		}()
		select {
		case <-answered:
		case <-l.dead:
			return
		case <-time.After(keepaliveLost * every):
			l.blame(fmt.Errorf("no answer for %v", keepaliveLost*every))
			l.client.Close()
			return
		}
	}
}

// open opens a session and prepares it, trying again while the host has none free.
func (l *sshLink) open(ctx context.Context, begin func(*ssh.Session) error) (*ssh.Session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sessionLimit, errors.New("the host opened no session"))
	defer cancel()
	for pause := retryFirst; ; pause = min(2*pause, retryMost) {
		s, err := l.openOnce(ctx, begin)
		var full *ssh.OpenChannelError
		if err == nil || !errors.As(err, &full) {
			return s, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func (l *sshLink) openOnce(ctx context.Context, begin func(*ssh.Session) error) (*ssh.Session, error) {
	type opened struct {
		s   *ssh.Session
		err error
	}
	got := make(chan opened, 1)
	go func() {
		s, err := l.client.NewSession()
		if err == nil {
			if err = begin(s); err != nil {
				s.Close()
			}
		}
		got <- opened{s, err}
	}()
	select {
	case o := <-got:
		if o.err != nil {
			return nil, l.orLost(o.err)
		}
		return o.s, nil
	case <-ctx.Done():
		go func() { // an answer that comes late; none comes after the connection
			if o := <-got; o.err == nil {
				o.s.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// orLost prefers the connection's end over what it made of a call. The end is
// known a moment after its effects.
func (l *sshLink) orLost(err error) error {
	var missing *ssh.ExitMissingError
	ended := errors.As(err, &missing) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
	if !ended {
		return err
	}
	select {
	case <-l.dead:
		return l.cause()
	case <-time.After(time.Second):
	}
	if missing != nil {
		return fmt.Errorf("%w: the session ended without an exit status", ErrLost)
	}
	return err
}

func (l *sshLink) start(ctx context.Context, argv []string, stdout, stderr io.Writer) (process, error) {
	line := "exec " + Quote(append([]string{"sh", "-c", lead, "sh"}, argv...)...)
	p := &sshProcess{link: l}
	var err error
	p.session, err = l.open(ctx, func(s *ssh.Session) (err error) {
		s.Stdout, s.Stderr = stdout, stderr
		if p.in, err = s.StdinPipe(); err != nil {
			return err
		}
		return s.Start(line)
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

type sshProcess struct {
	link    *sshLink
	session *ssh.Session
	in      io.WriteCloser
}

func (p *sshProcess) stdin() io.WriteCloser { return p.in }
func (p *sshProcess) abandon()              { p.session.Close() }

func (p *sshProcess) wait() (status, error) {
	err := p.session.Wait()
	p.session.Close()
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return status{}, nil
	case errors.As(err, &exit):
		code := exit.ExitStatus()
		if n := unix.SignalNum("SIG" + exit.Signal()); n != 0 {
			code = 128 + int(n)
		}
		return status{code: code, signal: exit.Signal()}, nil
	}
	return status{}, p.link.orLost(err)
}
