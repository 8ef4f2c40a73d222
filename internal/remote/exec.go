package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Cmd is one command on a host.
type Cmd struct {
	Argv   []string // never passed through a shell unquoted
	Become bool     // as root, by sudo when the login is not root
	Env    []string // KEY=value, added to the host's own
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// announce prints the process group on standard output, after a mark that
// tells it from whatever a login shell prints, and becomes the command. Inside
// sudo it tells the group that sudo gave the command.
const announce = `read -r a b c d g r </proc/$$/stat; printf '%s %s\n' "$1" "$g"; shift; exec "$@"`

// signalGroup sends a signal to a process group.
const signalGroup = `kill -s "$0" -- "-$1"`

var envForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)

// Exec runs a command and waits for it, and for whatever holds its output
// open. Input and output are streamed. When ctx ends, the command's whole process group is ended on the
// host, by SIGTERM and 5 s later by SIGKILL, and the error is ctx's cause. A command that fails
// gives an *ExitError; one that is not there exits with 127.
// When a writer of cmd fails the command is ended too.
func (c *Conn) Exec(ctx context.Context, cmd Cmd) error {
	if err := cmd.check(); err != nil {
		return c.errorf(shown(cmd.Argv), err)
	}
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return c.errorf(shown(cmd.Argv), err)
	}
	defer done()
	if err := acquire(ctx, c.slots, 1); err != nil {
		return c.errorf(shown(cmd.Argv), err)
	}
	defer c.slots.Release(1)
	return c.run(ctx, cmd)
}

func (cmd Cmd) check() error {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return errors.New("no command is given")
	}
	size := 0
	for _, w := range append(cmd.Argv[:len(cmd.Argv):len(cmd.Argv)], cmd.Env...) {
		if strings.ContainsRune(w, 0) {
			return errors.New("a NUL byte cannot be passed to a command")
		}
		size += len(w) + 1
	}
	const limit = 100 << 10 // a login shell gets all of it as one argument, and those end at 128 KiB
	if size > limit {
		return fmt.Errorf("%d bytes of arguments: at most %d can be passed; use standard input", size, limit)
	}
	if len(cmd.Env) > 0 && strings.Contains(cmd.Argv[0], "=") {
		return fmt.Errorf("a program named %q cannot be given an environment", cmd.Argv[0])
	}
	for _, e := range cmd.Env {
		if !envForm.MatchString(e) {
			return fmt.Errorf("environment entry %q is not of the form KEY=value", e)
		}
	}
	return nil
}

// argv is what is started on the host.
func (cmd Cmd) argv(mark string, sudo bool) []string {
	argv := cmd.Argv
	if len(cmd.Env) > 0 {
		argv = append(append([]string{"env"}, cmd.Env...), argv...)
	}
	argv = append([]string{"sh", "-c", announce, "sh", mark}, argv...)
	if sudo {
		argv = append([]string{"sudo", "-n", "--"}, argv...)
	}
	return argv
}

// execution is one running command.
type execution struct {
	conn   *Conn
	cmd    Cmd
	sudo   bool
	proc   process
	group  *markWriter
	stderr clip
	ended  chan outcome
}

type outcome struct {
	status status
	err    error
}

// run does Exec's work; the caller holds a session.
func (c *Conn) run(ctx context.Context, cmd Cmd) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	mark := "krig-" + rand.Text()
	x := &execution{conn: c, cmd: cmd, sudo: cmd.Become && !c.root, ended: make(chan outcome, 1)}
	x.group = newMarkWriter(mark, guarded(cmd.Stdout, fail))
	stderr := io.Writer(&x.stderr)
	if cmd.Stderr != nil {
		stderr = io.MultiWriter(&x.stderr, guarded(cmd.Stderr, fail))
	}
	var err error
	if x.proc, err = c.link.start(ctx, cmd.argv(mark, x.sudo), x.group, stderr); err != nil {
		return x.failed(ctx, err)
	}
	go feed(x.proc.stdin(), cmd.Stdin, fail)
	go func() {
		st, err := x.proc.wait()
		x.ended <- outcome{st, err}
	}()
	select {
	case o := <-x.ended:
		return x.result(ctx, o)
	case <-ctx.Done():
		return x.failed(ctx, x.end())
	}
}

// feed streams standard input. It is not waited for: a reader may block for
// longer than the command lives.
func feed(to io.WriteCloser, from io.Reader, fail context.CancelCauseFunc) {
	defer to.Close()
	if from == nil {
		return
	}
	source := &sourceReader{from: from}
	if _, err := io.Copy(to, source); err != nil && source.err != nil {
		fail(fmt.Errorf("reading its standard input: %w", source.err))
	}
}

// result is the error of a command that has ended by itself.
func (x *execution) result(ctx context.Context, o outcome) error {
	switch {
	case o.err != nil, ctx.Err() != nil: // perhaps its output could not be written
		return x.failed(ctx, o.err)
	case o.status == status{}:
		return nil
	}
	if begun, _ := x.group.found(); x.sudo && !begun {
		return x.conn.errorf("becoming root", sudoError(x.stderr.String()))
	}
	return &ExitError{
		Host: x.conn.host, Argv: x.cmd.Argv,
		Code: o.status.code, Signal: o.status.signal, Stderr: x.stderr.String(),
	}
}

// failed is the error of a command with no status of its own.
func (x *execution) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if err == nil {
			err = context.Cause(ctx)
		} else {
			err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
	}
	return x.conn.errorf(shown(x.cmd.Argv), err)
}

// end ends the process group; an error says that it may still run.
func (x *execution) end() error {
	group := x.awaitGroup()
	if group <= 1 { // never one that means more than this command
		return x.abandon(errors.New("it was still starting and may run on"))
	}
	termErr := x.conn.signal("TERM", group, x.sudo)
	ended := x.awaitEnd(killGrace)
	// Members of the group may outlive its leader.
	killErr := x.conn.signal("KILL", group, x.sudo)
	if ended || x.awaitEnd(endLimit) {
		return nil
	}
	return x.abandon(errors.Join(errors.New("it may still run"), termErr, killErr))
}

func (x *execution) abandon(err error) error {
	x.proc.abandon()
	return err
}

// awaitGroup waits for the announcement; 0 when it does not come.
func (x *execution) awaitGroup() int {
	select {
	case <-x.group.ready:
	case o := <-x.ended:
		x.ended <- o
	case <-time.After(endLimit):
	}
	_, group := x.group.found()
	return group
}

func (x *execution) awaitEnd(limit time.Duration) bool {
	select {
	case o := <-x.ended:
		x.ended <- o
		return true
	case <-time.After(limit):
		return false
	}
}

// signal sends a signal to a process group, over the session that is kept for
// it, on a context of its own: the caller's has ended.
func (c *Conn) signal(name string, group int, sudo bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	if err := acquire(ctx, c.kills, 1); err != nil {
		return err
	}
	defer c.kills.Release(1)
	argv := []string{"sh", "-c", signalGroup, name, strconv.Itoa(group)}
	if sudo {
		argv = append([]string{"sudo", "-n", "--"}, argv...)
	}
	p, err := c.link.start(ctx, argv, io.Discard, io.Discard)
	if err != nil {
		return fmt.Errorf("sending SIG%s: %w", name, err)
	}
	p.stdin().Close()
	waited := make(chan outcome, 1)
	go func() {
		st, err := p.wait()
		waited <- outcome{st, err}
	}()
	select {
	case o := <-waited:
		return o.err // a group that is gone is what was wanted
	case <-ctx.Done():
		p.abandon()
		return fmt.Errorf("sending SIG%s: no answer within %v", name, endLimit)
	}
}

// sudoError says what sudo's refusal means.
func sudoError(stderr string) error {
	says := headline(stderr)
	switch {
	case strings.Contains(stderr, "must have a tty"):
		return fmt.Errorf("%w (%s): its settings have requiretty; remove that for this user", ErrSudo, says)
	case strings.Contains(stderr, "password is required"), strings.Contains(stderr, "no tty present"),
		strings.Contains(stderr, "a terminal is required"):
		return fmt.Errorf("%w (%s): it wants a password; allow this user NOPASSWD", ErrSudo, says)
	case strings.Contains(stderr, "not in the sudoers"), strings.Contains(stderr, "not allowed"),
		strings.Contains(stderr, "may not run"):
		return fmt.Errorf("%w (%s): this user has no right to it", ErrSudo, says)
	case strings.Contains(stderr, "not found"):
		return fmt.Errorf("%w (%s): install sudo, or log in as root", ErrSudo, says)
	}
	return fmt.Errorf("%w (%s)", ErrSudo, says)
}
