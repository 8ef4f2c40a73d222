package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"krig/internal/rundir"
)

// machineName is what the host of [Local] is called.
const machineName = rundir.Machine

// Local is this machine. Commands are started and ended as on any other host.
func Local() *Conn { return newConn(machineName, os.Geteuid() == 0, newLocalLink()) }

// localLink starts commands as children of krig.
type localLink struct {
	closed chan struct{}
	once   sync.Once
}

func newLocalLink() *localLink { return &localLink{closed: make(chan struct{})} }

func (l *localLink) start(_ context.Context, argv []string, stdout, stderr io.Writer) (process, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	// A session of its own: a terminal's ^C reaches krig alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	err = cmd.Start()
	if errors.Is(err, exec.ErrNotFound) {
		in.Close()
		fmt.Fprintf(stderr, "%s: not found\n", argv[0])
		return absentProcess{}, nil
	}
	if err != nil {
		return nil, err
	}
	return &localProcess{cmd: cmd, in: in}, nil
}

func (l *localLink) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, addr)
}

func (l *localLink) files(context.Context) (store, error) { return localStore{}, nil }
func (l *localLink) lost() <-chan struct{}                { return l.closed }
func (l *localLink) cause() error                         { return net.ErrClosed }

func (l *localLink) close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

type localProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

func (p *localProcess) stdin() io.WriteCloser { return p.in }
func (p *localProcess) abandon()              {}

func (p *localProcess) wait() (status, error) {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return status{}, err
	}
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		name := strings.TrimPrefix(unix.SignalName(ws.Signal()), "SIG")
		return status{code: 128 + int(ws.Signal()), signal: name}, nil
	}
	return status{code: ws.ExitStatus()}, nil
}

// absentProcess is a program that is not there: it ends as a shell would end.
type absentProcess struct{}

func (absentProcess) stdin() io.WriteCloser { return discardCloser{} }
func (absentProcess) wait() (status, error) { return status{code: 127}, nil }
func (absentProcess) abandon()              {}

type discardCloser struct{}

func (discardCloser) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (discardCloser) Close() error              { return nil }
