package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// VerbExec is the verb behind [Exec].
const VerbExec = "exec"

// ExecSpec is one process to run on the agent's host, in a process group of
// its own that ends with the lease.
type ExecSpec struct {
	Argv  []string      `json:"argv"`
	Env   []string      `json:"env,omitempty"`   // KEY=value, added to the agent's own
	Dir   string        `json:"dir,omitempty"`   // "" is the agent's own
	Stdin []byte        `json:"stdin,omitempty"` // all of its standard input
	Limit time.Duration `json:"limit,omitempty"` // after which it is ended; 0 is none
}

// Line is one line that a process printed.
type Line struct {
	At     time.Time `json:"at"` // UTC on the agent's clock, when it was read
	Stderr bool      `json:"stderr,omitempty"`
	Text   string    `json:"text"` // without its end; longer ones than 64 KiB come in pieces
}

// ExecEnd is how a process ended and what it used.
type ExecEnd struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started"` // UTC on the agent's clock
	Ended   time.Time `json:"ended"`
	Code    int       `json:"code"`             // 128 plus the signal's number when a signal ended it
	Signal  string    `json:"signal,omitempty"` // such as KILL; "" when it exited by itself
	Limit   bool      `json:"limit,omitempty"`  // it was ended because ExecSpec.Limit had passed
	User    float64   `json:"user"`             // CPU seconds in user mode, of it and children it waited for
	System  float64   `json:"system"`           // CPU seconds in the kernel
	MaxRSS  int64     `json:"max_rss"`          // bytes of memory at the most
}

// Kinds of messages of the exec verb.
const (
	ExecLines   = "lines" // []Line
	ExecEnded   = "ended" // ExecEnd, the last
	execDrainBy = 30 * time.Second
)

// Exec runs a process and hands its lines to line, in order and from one goroutine, until it has
// ended. That it ended badly is no error: see ExecEnd. When ctx ends the process group is ended,
// Exec waits for that, and the error is ctx's cause, beside whatever is known of the end.
func Exec(ctx context.Context, c *Client, spec ExecSpec, line func(Line)) (ExecEnd, error) {
	var end ExecEnd
	call, err := c.Call(ctx, VerbExec, spec)
	if err != nil {
		return end, err
	}
	next := ctx
	for {
		m, err := call.Next(next)
		switch {
		case err == nil:
			err = execMessage(m, &end, line)
		case errors.Is(err, io.EOF):
			return end, context.Cause(ctx) // nil while ctx lives
		case ctx.Err() != nil && next == ctx:
			// Cancelled: its last lines and its end are still on the way.
			var cancel context.CancelFunc
			next, cancel = context.WithTimeout(context.WithoutCancel(ctx), execDrainBy)
			defer cancel()
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return end, fmt.Errorf("%w (%w)", context.Cause(ctx), err)
			}
			return end, err
		}
	}
}

func execMessage(m Message, end *ExecEnd, line func(Line)) error {
	switch m.Kind {
	case ExecLines:
		var lines []Line
		if err := json.Unmarshal(m.Body, &lines); err != nil {
			return fmt.Errorf("reading lines: %w", err)
		}
		if line == nil {
			return nil
		}
		for _, l := range lines {
			line(l)
		}
		return nil
	case ExecEnded:
		return json.Unmarshal(m.Body, end)
	}
	return fmt.Errorf("exec: a %q message is not known", m.Kind)
}
