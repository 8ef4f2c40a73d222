package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"krig/internal/agent"
)

const (
	// execGrace is how long a process may take to end after SIGTERM.
	execGrace = 5 * time.Second
	// lineLimit is how long a line may be; longer ones come in pieces.
	lineLimit = 64 << 10
	// pipeMost is the most that a pipe may still hold at its process's end.
	pipeMost  = 1 << 20
	drainWait = 100 * time.Millisecond
)

var errLimit = errors.New("its time limit has passed")

// execVerb runs one process and sends its lines as they come, stamped, and
// then how it ended.
func execVerb(ctx context.Context, s *agent.Session) error {
	var spec agent.ExecSpec
	if err := json.Unmarshal(s.Args, &spec); err != nil {
		return fmt.Errorf("reading its arguments: %w", err)
	}
	if len(spec.Argv) == 0 {
		return errors.New("no command is given")
	}
	if spec.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, spec.Limit, errLimit)
		defer cancel()
	}
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	cmd.Dir = spec.Dir
	cmd.Env = append(os.Environ(), spec.Env...)
	p := &printer{session: s}
	c, err := p.start(cmd, spec.Stdin)
	if err != nil {
		return fmt.Errorf("starting %s: %w", spec.Argv[0], err)
	}
	waitErr := c.wait(ctx, syscall.SIGTERM, execGrace)
	p.finish()
	if errors.Is(context.Cause(ctx), agent.ErrLease) {
		return agent.ErrLease
	}
	var exit *exec.ExitError
	if waitErr != nil && !errors.As(waitErr, &exit) {
		return waitErr
	}
	end := endOf(c)
	end.Limit = errors.Is(context.Cause(ctx), errLimit)
	return s.Emit(agent.ExecEnded, end)
}

// endOf reads what the kernel tells of an ended process.
func endOf(c *child) agent.ExecEnd {
	state := c.cmd.ProcessState
	end := agent.ExecEnd{
		PID: state.Pid(), Started: c.started.UTC(), Ended: c.ended.UTC(),
		User: state.UserTime().Seconds(), System: state.SystemTime().Seconds(),
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		end.MaxRSS = usage.Maxrss << 10 // Linux counts it in KiB
	}
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		end.Signal = strings.TrimPrefix(unix.SignalName(ws.Signal()), "SIG")
		end.Code = 128 + int(ws.Signal())
	} else {
		end.Code = ws.ExitStatus()
	}
	return end
}

// printer sends what a process prints.
type printer struct {
	session *agent.Session
	readers sync.WaitGroup
	ours    []*os.File // ends of pipes that the process does not hold
	mu      sync.Mutex
	broken  bool // krig is gone: read on, so that the process does not block
}

// start starts the process with its streams on pipes.
func (p *printer) start(cmd *exec.Cmd, stdin []byte) (*child, error) {
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			p.ours = append(p.ours, r)
			theirs = append(theirs, w)
		}
		return r, w, err
	}
	out, outW, err := pipe()
	if err != nil {
		return nil, err
	}
	stderr, errW, err := pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = outW, errW
	if len(stdin) > 0 {
		cmd.Stdin = bytes.NewReader(stdin)
		cmd.WaitDelay = execGrace // a process may end before it has read all
	}
	c, err := startChild(cmd)
	if err != nil {
		p.close()
		return nil, err
	}
	p.readers.Go(func() { p.read(out, false) })
	p.readers.Go(func() { p.read(stderr, true) })
	return c, nil
}

func (p *printer) close() {
	for _, f := range p.ours {
		f.Close()
	}
}

// finish waits for the last lines. The group is dead by now: only a process
// that left it may hold the pipes still, and is not waited for.
func (p *printer) finish() {
	for _, f := range p.ours {
		expire(f, 0)
	}
	p.readers.Wait()
	p.close()
}

// expire ends a pipe's reads. Where that cannot be, closing it does.
func expire(f *os.File, in time.Duration) {
	if err := f.SetReadDeadline(time.Now().Add(in)); err != nil {
		f.Close()
	}
}

// read sends lines until the end, or until it is to finish and the pipe is empty.
func (p *printer) read(from *os.File, stderr bool) {
	var held []byte
	buf := make([]byte, 64<<10)
	for rest := pipeMost; rest > 0; {
		n, err := from.Read(buf)
		at := time.Now().UTC()
		late := errors.Is(err, os.ErrDeadlineExceeded)
		var texts []string
		texts, held = split(append(held, buf[:n]...), err != nil && !late)
		p.send(texts, at, stderr)
		switch {
		case late && rest == pipeMost: // to finish: what the pipe holds comes at once
			rest--
			expire(from, drainWait)
		case err != nil:
			rest = 0
		case rest < pipeMost:
			rest -= n
			expire(from, drainWait)
		}
	}
	texts, _ := split(held, true)
	p.send(texts, time.Now().UTC(), stderr)
}

// split takes whole lines from data, and pieces of those that are too long. At
// the end what is left is a line too.
func split(data []byte, end bool) (lines []string, rest []byte) {
	for {
		line, after, found := bytes.Cut(data, []byte("\n"))
		switch {
		case found && len(line) <= lineLimit:
			lines = append(lines, string(bytes.TrimSuffix(line, []byte("\r"))))
			data = after
		case len(data) > lineLimit:
			lines = append(lines, string(data[:lineLimit]))
			data = data[lineLimit:]
		case end && len(data) > 0:
			return append(lines, string(data)), nil
		default:
			return lines, bytes.Clone(data)
		}
	}
}

func (p *printer) send(texts []string, at time.Time, stderr bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(texts) == 0 || p.broken {
		return
	}
	lines := make([]agent.Line, len(texts))
	for i, t := range texts {
		lines[i] = agent.Line{At: at, Stderr: stderr, Text: t}
	}
	p.broken = p.session.Emit(agent.ExecLines, lines) != nil
}
