package remote

import (
	"context"
	"io"
	"net"
	"sync"
)

// dial opens a connection from the host (direct-tcpip).
func (l *sshLink) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	far, err := l.client.DialContext(ctx, network, addr)
	if err != nil {
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
	wg   sync.WaitGroup
	once sync.Once
}

func newTunnel(far net.Conn, addr string) *tunnel {
	near, inner := net.Pipe()
	t := &tunnel{Conn: near, far: far, addr: tunnelAddr(addr)}
	t.wg.Go(func() {
		_, _ = io.Copy(inner, far) // an error of either shows as the end of both
		inner.Close()
	})
	t.wg.Go(func() {
		_, _ = io.Copy(far, inner)
		far.Close()
	})
	return t
}

// Close passes on what has been written, and ends both sides.
func (t *tunnel) Close() error {
	t.once.Do(func() {
		t.Conn.Close()
		t.wg.Wait()
	})
	return nil
}

func (t *tunnel) LocalAddr() net.Addr  { return tunnelAddr("ssh") }
func (t *tunnel) RemoteAddr() net.Addr { return t.addr }

type tunnelAddr string

func (tunnelAddr) Network() string  { return "tcp" }
func (a tunnelAddr) String() string { return string(a) }
