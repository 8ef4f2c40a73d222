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
)

// flushLimit is how long a closed connection may take to pass on what was
// written to it.
const flushLimit = time.Second

// dial opens a connection from the host (direct-tcpip).
func (l *sshLink) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	far, err := l.client.DialContext(ctx, network, addr)
	var refused *ssh.OpenChannelError
	switch {
	case errors.As(err, &refused) && refused.Reason == ssh.Prohibited:
		return nil, fmt.Errorf("its sshd forwards no connections (AllowTcpForwarding): %w", err)
	case err != nil:
		return nil, l.orLost(err)
	}
	return newTunnel(far, addr), nil
}

// tunnel gives a forwarded connection the deadlines that SSH channels lack:
// the near side is a pipe that has them.
type tunnel struct {
	net.Conn
	far  net.Conn
	addr tunnelAddr
	done chan struct{} // closed when nothing more is passed on
	once sync.Once
}

func newTunnel(far net.Conn, addr string) *tunnel {
	near, inner := net.Pipe()
	t := &tunnel{Conn: near, far: far, addr: tunnelAddr(addr), done: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(inner, far) // an error of either shows as the end of both
		inner.Close()
	})
	wg.Go(func() {
		_, _ = io.Copy(far, inner)
		far.Close()
	})
	go func() {
		wg.Wait()
		close(t.done)
	}()
	return t
}

// Close passes on what has been written, within a limit, and ends both sides.
func (t *tunnel) Close() error {
	t.once.Do(func() {
		t.Conn.Close()
		select {
		case <-t.done:
		case <-time.After(flushLimit):
			t.far.Close() // the other side reads no more
		}
	})
	return nil
}

func (t *tunnel) LocalAddr() net.Addr  { return tunnelAddr("ssh") }
func (t *tunnel) RemoteAddr() net.Addr { return t.addr }

type tunnelAddr string

func (tunnelAddr) Network() string  { return "tcp" }
func (a tunnelAddr) String() string { return string(a) }
