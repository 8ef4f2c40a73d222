package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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
	// triesBeforeMore is how often it is asked before a further connection is
	// made: a session that has just ended counts for a moment.
	triesBeforeMore = 3
	// hopLimit is how much later than its effects a jump host's end is known.
	hopLimit = 250 * time.Millisecond
)

// lead makes the command the leader of a process group: sshd has mostly done
// so, and then setsid would only fork.
const lead = `read -r a b c d g r </proc/$$/stat; l=; [ "$g" = "$$" ] || l=setsid; exec $l "$@"`

// sshLink is a connection to a host's sshd.
type sshLink struct {
	client *ssh.Client
	via    *passage      // given up when the link is closed
	dead   chan struct{} // closed when the connection has ended
	wg     sync.WaitGroup
	// again opens a further connection; nil on one that is a further one itself.
	again func(ctx context.Context) (*sshLink, error)

	mu     sync.Mutex
	why    error      // what broke the connection
	asked  time.Time  // when the keepalive was sent that is not answered yet; zero with none
	more   []*sshLink // further connections, for sessions that this one has no room for
	closed bool
}

func newSSHLink(client *ssh.Client, keepalive time.Duration, via *passage) *sshLink {
	l := &sshLink{client: client, via: via, dead: make(chan struct{})}
	l.wg.Go(func() {
		l.blame(l.ended(client.Wait()))
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

// ended prefers the end of the jump host's connection over what it made of
// this one. The end is known a moment after its effects.
func (l *sshLink) ended(err error) error {
	l.mu.Lock()
	known := l.why != nil
	l.mu.Unlock()
	if known || l.via.link == nil {
		return err
	}
	select {
	case <-l.via.link.dead:
		return l.via.errorf(l.via.link.cause())
	case <-time.After(hopLimit):
		return err
	}
}

func (l *sshLink) lost() <-chan struct{} { return l.dead }

func (l *sshLink) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

func (l *sshLink) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.why == nil:
		return ErrLost
	case errors.Is(l.why, ErrLost): // the jump host's
		return l.why
	}
	return fmt.Errorf("%w: %w", ErrLost, l.why)
}

func (l *sshLink) close() error {
	l.blame(net.ErrClosed)
	l.mu.Lock()
	more := l.more
	l.more, l.closed = nil, true
	l.mu.Unlock()
	err := l.client.Close()
	l.wg.Wait()
	for _, m := range more {
		_ = m.close() // what counts is that the first one is
	}
	l.via.leave()
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
		l.await(time.Now())
		go func() {
			// A refusal is an answer too; an error ends the connection by itself.
			_, _, _ = l.client.SendRequest("keepalive@openssh.com", true, nil)
			close(answered)
		}()
		select {
		case <-answered:
			l.await(time.Time{})
		case <-l.dead:
			return
		case <-time.After(keepaliveLost * every):
			l.blame(l.silence(every))
			l.client.Close()
			return
		}
	}
}

func (l *sshLink) await(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = since
}

// silence names who does not answer: a jump host, or this host behind it.
func (l *sshLink) silence(every time.Duration) error {
	for hop := l.via; hop.link != nil; hop = hop.link.via {
		hop.link.mu.Lock()
		asked := hop.link.asked
		hop.link.mu.Unlock()
		if !asked.IsZero() && time.Since(asked) >= every {
			return hop.errorf(fmt.Errorf("%w: no answer for %v", ErrLost, keepaliveLost*every))
		}
	}
	return fmt.Errorf("no answer for %v", keepaliveLost*every)
}

// open opens a session and prepares it, trying again while the host has none
// free, and on a further connection when that lasts: one connection may have
// fewer sessions (MaxSessions) than are needed at once. The session's own connection
// comes with it.
func (l *sshLink) open(ctx context.Context, begin func(*ssh.Session) error) (*ssh.Session, *sshLink, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, sessionLimit, errors.New("the host opened no session"))
	defer cancel()
	for pause, tries := retryFirst, 1; ; pause, tries = min(2*pause, retryMost), tries+1 {
		s, on, err := l.openSomewhere(ctx, begin)
		if isFull(err) && tries == triesBeforeMore {
			s, on, err = l.openOnMore(ctx, begin)
		}
		if !isFull(err) {
			return s, on, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// isFull tells whether a connection had no session free.
func isFull(err error) bool {
	var full *ssh.OpenChannelError
	return errors.As(err, &full)
}

// openSomewhere tries the connections that there are.
func (l *sshLink) openSomewhere(ctx context.Context, begin func(*ssh.Session) error) (*ssh.Session, *sshLink, error) {
	var err error
	for _, on := range append([]*sshLink{l}, l.further()...) {
		var s *ssh.Session
		if s, err = on.openOnce(ctx, begin); !isFull(err) {
			return s, on, err
		}
	}
	return nil, nil, err
}

// openOnMore makes a further connection for a session, and keeps it when that
// has room; the error is the refusal otherwise.
func (l *sshLink) openOnMore(ctx context.Context, begin func(*ssh.Session) error) (*ssh.Session, *sshLink, error) {
	if l.again == nil {
		return nil, nil, errors.New("no further connection is to be had")
	}
	on, err := l.again(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("it allows too few sessions a connection (MaxSessions), and another connection failed: %w", err)
	}
	s, err := on.openOnce(ctx, begin)
	if err == nil && l.keep(on) {
		return s, on, nil
	}
	if err == nil {
		err = net.ErrClosed
	}
	_ = on.close() // its sessions end with it
	return nil, nil, err
}

// further are the further connections; those that broke are let go.
func (l *sshLink) further() []*sshLink {
	l.mu.Lock()
	var whole, broken []*sshLink
	for _, m := range l.more {
		if m.isDead() {
			broken = append(broken, m)
		} else {
			whole = append(whole, m)
		}
	}
	l.more = whole
	l.mu.Unlock()
	for _, m := range broken {
		_ = m.close() // of a broken connection nothing is left to close
	}
	return slices.Clone(whole)
}

// keep counts a further connection among the link's, unless that is closed.
func (l *sshLink) keep(on *sshLink) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.more = append(l.more, on)
	}
	return !l.closed
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
	p := &sshProcess{}
	var err error
	p.session, p.link, err = l.open(ctx, func(s *ssh.Session) (err error) {
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
