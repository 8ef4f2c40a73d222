// Package remote is the one transport to hosts: run a command, open a
// connection, and on top of these put and get files. Hosts are reached over
// SSH, this machine by [Local]. It knows nothing of Kafka or of what the
// commands are for, and it never runs a string through a shell unquoted.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// callerSessions is how many sessions callers hold at once on one host.
	// sshd allows 10 a connection; one more is kept for ending commands.
	callerSessions = 8
	// killGrace is how long a command may take to end after SIGTERM.
	killGrace = 5 * time.Second
	// endLimit bounds each single step of ending a command.
	endLimit = 10 * time.Second
	// outputLimit is how much standard output [Conn.Output] keeps.
	outputLimit = 1 << 20
)

// Conn is an open connection to one host. It may be used from several
// goroutines; its starter closes it.
type Conn struct {
	host  string
	root  bool // the login is root: become needs no sudo
	link  link
	slots *semaphore.Weighted
	kills *semaphore.Weighted

	mu      sync.Mutex
	closed  bool
	closing chan struct{}
	running sync.WaitGroup
}

// link is a way to a host: SSH, or none for this machine. Arguments are passed
// on exactly; no limits are kept here.
type link interface {
	// start starts argv as the leader of a new process group.
	start(ctx context.Context, argv []string, stdout, stderr io.Writer) (process, error)
	dial(ctx context.Context, network, addr string) (net.Conn, error)
	files(ctx context.Context) (store, error)
	// lost is closed when the connection has broken; cause then says why.
	lost() <-chan struct{}
	cause() error
	close() error
}

// process is a started command.
type process interface {
	stdin() io.WriteCloser
	// wait returns when the command has ended and its output is written out.
	// An error means that no status is known.
	wait() (status, error)
	// abandon gives up on a command that cannot be ended; wait may then never return.
	abandon()
}

// status is how a command ended. With a signal, code is 128 plus its number, as in a shell.
type status struct {
	code   int
	signal string // without SIG; "" when it exited
}

func newConn(host string, root bool, l link) *Conn {
	return &Conn{
		host: host, root: root, link: l,
		slots:   semaphore.NewWeighted(callerSessions),
		kills:   semaphore.NewWeighted(1),
		closing: make(chan struct{}),
	}
}

// Host is the name of the host: for [Local] it is "machine".
func (c *Conn) Host() string { return c.host }

// Output runs argv and returns its standard output, at most the first 1 MiB of it.
func (c *Conn) Output(ctx context.Context, argv ...string) (string, error) {
	return c.output(ctx, Cmd{Argv: argv})
}

// Root is [Conn.Output] as root.
func (c *Conn) Root(ctx context.Context, argv ...string) (string, error) {
	return c.output(ctx, Cmd{Argv: argv, Become: true})
}

func (c *Conn) output(ctx context.Context, cmd Cmd) (string, error) {
	out := headWriter{limit: outputLimit}
	cmd.Stdout = &out
	err := c.Exec(ctx, cmd)
	return string(out.data), err
}

// DialContext opens a connection from the host to addr. The network is tcp.
// Deadlines work as on any other connection.
func (c *Conn) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil, c.errorf("connecting to "+addr, fmt.Errorf("network %q is not supported", network))
	}
	conn, err := c.link.dial(ctx, network, addr)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, c.errorf("connecting to "+addr, err)
	}
	return conn, nil
}

// Broken tells whether the connection has been lost or closed.
func (c *Conn) Broken() bool {
	select {
	case <-c.link.lost():
		return true
	case <-c.closing:
		return true
	default:
		return false
	}
}

// Close ends every command on the connection, waits for them within a limit,
// and closes it. It may be called again.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	close(c.closing)
	c.mu.Unlock()

	c.running.Wait() // bounded: each command's end is
	if err := c.link.close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
		return c.errorf("closing the connection", err)
	}
	return nil
}

// begin counts a call that Close has to wait for, and derives the context
// that ends with the connection.
func (c *Conn) begin(ctx context.Context) (context.Context, func(), error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, net.ErrClosed
	}
	c.running.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		select {
		case <-c.closing:
			cancel(net.ErrClosed)
		case <-ended:
		}
	}()
	return ctx, func() {
		close(ended)
		cancel(nil)
		c.running.Done()
	}, nil
}

// acquire takes n of the host's sessions.
func acquire(ctx context.Context, s *semaphore.Weighted, n int64) error {
	if err := s.Acquire(ctx, n); err != nil {
		return fmt.Errorf("waiting for a free session: %w", context.Cause(ctx))
	}
	return nil
}
