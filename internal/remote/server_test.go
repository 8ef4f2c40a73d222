package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"krig/internal/rundir"
)

// testServer is an SSH server in this process, for what a real sshd does not
// do when asked: dropping logins, refusing keys for a while, running out of
// sessions, falling silent. Commands are run by sh, not as leaders of a group.
// What it was not told to do it refuses.
type testServer struct {
	host   rundir.Host
	dir    string
	signer ssh.Signer

	mu       sync.Mutex
	drop     int // logins still to be dropped before the banner
	dropText string
	refuse   int // keys still to be refused; -1 refuses for ever
	full     int // sessions still to be refused
	wrong    int // logins still to be met with the other host key
	other    ssh.Signer
	asked    int // keys that were shown
	logins   int
	sessions int // open now
	most     int // open at one time
	conns    []net.Conn
}

func startTestServer(t *testing.T) *testServer {
	t.Helper()
	s := &testServer{dir: t.TempDir()}
	hostKey := writeKeys(t, s.dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(s.dir, "host"))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		t.Fatal(err)
	}
	s.signer = signer
	s.host = rundir.Host{Name: "b1", SSH: rundir.SSH{
		Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: "root", KeyFile: "id", HostKey: []string{hostKey},
	}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		s.cut()
		wg.Wait()
	})
	return s
}

// with changes what the server does.
func (s *testServer) with(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// cut breaks every connection.
func (s *testServer) cut() {
	s.with(func() {
		for _, c := range s.conns {
			c.Close()
		}
	})
}

func (s *testServer) auth(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.refuse != 0 {
		s.refuse--
		return nil, errors.New("not yet")
	}
	return nil, nil
}

func (s *testServer) serve(conn net.Conn) {
	defer conn.Close()
	config := &ssh.ServerConfig{PublicKeyCallback: s.auth}
	key := s.signer
	dropped := false
	s.with(func() {
		s.logins++
		s.conns = append(s.conns, conn)
		if dropped = s.drop > 0; dropped {
			s.drop--
			io.WriteString(conn, s.dropText)
		} else if s.wrong > 0 {
			s.wrong--
			key = s.other
		}
	})
	if dropped {
		return
	}
	config.AddHostKey(key)
	_, chans, reqs, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(reqs) // refuses keepalives, which is an answer
	for c := range chans {
		go s.channel(c)
	}
}

func (s *testServer) channel(c ssh.NewChannel) {
	refused := c.ChannelType() != "session"
	s.with(func() {
		if s.full > 0 {
			s.full--
			refused = true
		}
		if !refused {
			s.sessions++
			s.most = max(s.most, s.sessions)
		}
	})
	if refused {
		c.Reject(ssh.ConnectionFailed, "open failed")
		return
	}
	ended := func() { s.with(func() { s.sessions-- }) }
	ch, reqs, err := c.Accept()
	if err != nil {
		ended()
		return
	}
	defer ch.Close()
	defer ended() // before the caller hears of it, who may then open the next
	for r := range reqs {
		if r.Type != "exec" {
			r.Reply(false, nil)
			continue
		}
		r.Reply(true, nil)
		line := string(r.Payload[4:])
		if n := binary.BigEndian.Uint32(r.Payload); int(n) != len(line) {
			panic(fmt.Sprintf("a command of %d bytes has %d", n, len(line)))
		}
		go ssh.DiscardRequests(reqs)
		ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, runHere(ch, line)))
		return
	}
}

// runHere runs a command line of a session.
func runHere(ch ssh.Channel, line string) uint32 {
	cmd := exec.Command("sh", "-c", line)
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	go func() {
		io.Copy(in, ch)
		in.Close()
	}()
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return uint32(exit.ExitCode())
	}
	return 0
}
