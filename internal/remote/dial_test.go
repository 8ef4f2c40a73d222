package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// echoServer answers with what it is sent, until the sender closes.
func echoServer(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func TestDialContext(t *testing.T) {
	addr := echoServer(t)
	overBoth(t, func(t *testing.T, c *Conn) {
		conn, err := c.DialContext(limited(t, 20*time.Second), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if conn.RemoteAddr().String() != addr || conn.LocalAddr() == nil {
			t.Errorf("from %v to %v", conn.LocalAddr(), conn.RemoteAddr())
		}
		want := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB, more than any window
		go conn.Write(want)
		got := make([]byte, len(want))
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("it came back otherwise: %v", err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	addr := echoServer(t)
	overBoth(t, func(t *testing.T, c *Conn) {
		conn, err := c.DialContext(limited(t, 20*time.Second), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		var timeout net.Error
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("read: %v", err)
		}
		conn.SetReadDeadline(time.Time{}) // usable again
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Errorf("write: %v", err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Errorf("read after the deadline: %v", err)
		}
		conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		for err = nil; err == nil; { // nobody reads what comes back
			_, err = conn.Write(make([]byte, 1<<20))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: %v", err)
		}
	})
}

// A connection whose other side reads nothing can be closed all the same.
func TestCloseOfFullConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	overBoth(t, func(t *testing.T, c *Conn) {
		conn, err := c.DialContext(limited(t, 20*time.Second), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		full := make(chan error, 1)
		go func() {
			_, err := conn.Write(make([]byte, 64<<20)) // more than all windows and buffers
			full <- err
		}()
		time.Sleep(time.Second)
		begun := time.Now()
		conn.Close()
		if err := <-full; err == nil {
			t.Error("everything was written, and nobody read it")
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestConnectionEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	overBoth(t, func(t *testing.T, c *Conn) {
		for name, end := range map[string]func(near, far net.Conn){
			"far side":  func(_, far net.Conn) { far.Close() },
			"near side": func(near, _ net.Conn) { near.Close() },
		} {
			near, err := c.DialContext(limited(t, 20*time.Second), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			far, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := near.Write([]byte("last words")); err != nil {
				t.Error(err)
			}
			got := make([]byte, 10)
			if _, err := io.ReadFull(far, got); err != nil || string(got) != "last words" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			end(near, far)
			far.SetDeadline(time.Now().Add(10 * time.Second))
			near.SetDeadline(time.Now().Add(10 * time.Second))
			if _, err := near.Read(got); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: reading near: %v", name, err)
			}
			if _, err := far.Read(got); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: reading far: %v", name, err)
			}
			near.Close()
			far.Close()
		}
	})
}

func TestDialContextFails(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		addr := net.JoinHostPort("127.0.0.1", "1")
		_, err := c.DialContext(limited(t, 20*time.Second), "tcp", addr)
		if err == nil || !strings.HasPrefix(err.Error(), c.Host()+": connecting to 127.0.0.1:1: ") || !strings.Contains(strings.ToLower(err.Error()), "connection refused") {
			t.Errorf("got %v", err)
		}
		if _, err := c.DialContext(t.Context(), "udp", addr); err == nil || !strings.HasSuffix(err.Error(), `network "udp" is not supported`) {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errFail)
		if _, err := c.DialContext(ctx, "tcp", addr); !errors.Is(err, errFail) {
			t.Errorf("got %v", err)
		}
	})
}

func TestHostThatForwardsNothing(t *testing.T) {
	c := dialTest(t, startSSHD(t, "AllowTcpForwarding no"))
	_, err := c.DialContext(limited(t, 20*time.Second), "tcp", "127.0.0.1:1")
	if err == nil || !strings.Contains(err.Error(), "its sshd forwards no connections (AllowTcpForwarding)") {
		t.Errorf("got %v", err)
	}
}
