package remote

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors that callers branch on.
var (
	// ErrHostKey means that a host did not prove itself with a pinned key. It
	// is never transient, but on a host that boots.
	ErrHostKey = errors.New("the host key is not the pinned one")
	// ErrAuth means that the host refused the user or key for longer than a
	// booting host may.
	ErrAuth = errors.New("the host refused the login")
	// ErrSudo means that the login may not become root without being asked;
	// the command did not run.
	ErrSudo = errors.New("sudo refused")
	// ErrLost means that the connection, or the session, ended before the command did: what
	// the command did is unknown. A reboot ends in this too.
	ErrLost = errors.New("the connection was lost")
)

// ExitError is a command that ran and failed. Argv is shown in messages:
// secrets belong on standard input.
type ExitError struct {
	Host   string
	Argv   []string
	Code   int    // 128 plus the signal's number when a signal ended it
	Signal string // such as TERM; "" when it exited by itself
	Stderr string // its head and tail, at most 8 KiB in all
}

// Error names host, command, how it ended, and the head of standard error.
func (e *ExitError) Error() string {
	how := fmt.Sprintf("exit %d", e.Code)
	if e.Signal != "" {
		how = "ended by SIG" + e.Signal
	}
	text := fmt.Sprintf("%s: %s: %s", e.Host, shown(e.Argv), how)
	if head := headline(e.Stderr); head != "" {
		text += ": " + head
	}
	return text
}

func (e *ExitError) onHost() string { return e.Host }

// shown is argv as a line that can be pasted, cut when it is long.
func shown(argv []string) string {
	const limit = 300
	line := Quote(argv...)
	if len(line) > limit {
		line = strings.ToValidUTF8(line[:limit], "") + "…"
	}
	return line
}

// headline is the first few lines of a text, on one line.
func headline(text string) string {
	const lines, limit = 5, 500
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && len(kept) < lines {
			kept = append(kept, line)
		}
	}
	head := strings.Join(kept, "; ")
	if len(head) > limit {
		head = strings.ToValidUTF8(head[:limit], "") + "…"
	}
	return head
}

// hostError is anything else that went wrong on a host.
type hostError struct {
	host, doing string
	err         error
}

func (e *hostError) Error() string  { return e.host + ": " + e.doing + ": " + e.err.Error() }
func (e *hostError) Unwrap() error  { return e.err }
func (e *hostError) onHost() string { return e.host }

func (c *Conn) errorf(doing string, err error) error {
	return &hostError{host: c.host, doing: doing, err: err}
}

// HostError is one host's failure.
type HostError struct {
	Host string
	Err  error
}

// Error names the host once, whether or not the cause does.
func (e HostError) Error() string {
	var named interface {
		error
		onHost() string
	}
	if errors.As(e.Err, &named) && named.onHost() == e.Host {
		return e.Err.Error()
	}
	return e.Host + ": " + e.Err.Error()
}

// Unwrap is the cause.
func (e HostError) Unwrap() error { return e.Err }

// HostsError lists the hosts on which a step failed, sorted by name. Work on
// hosts not listed has succeeded. errors.Is and errors.As see every cause.
type HostsError struct {
	Total  int // hosts that were tried
	Failed []HostError
}

// Error is one line a failed host; with several it begins with how many failed.
func (e *HostsError) Error() string {
	if len(e.Failed) == 1 {
		return e.Failed[0].Error()
	}
	lines := []string{fmt.Sprintf("%d of %d hosts failed:", len(e.Failed), e.Total)}
	for _, f := range e.Failed {
		lines = append(lines, f.Error())
	}
	return strings.Join(lines, "\n  ")
}

// Unwrap lists every cause.
func (e *HostsError) Unwrap() []error {
	out := make([]error, len(e.Failed))
	for i, f := range e.Failed {
		out[i] = f
	}
	return out
}

// orNil is the only way out: never a typed nil.
func (e *HostsError) orNil() error {
	if e == nil || len(e.Failed) == 0 {
		return nil
	}
	slices.SortFunc(e.Failed, func(a, b HostError) int { return cmp.Compare(a.Host, b.Host) })
	return e
}
