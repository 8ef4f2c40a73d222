package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Runner runs a command on the agent's host with these streams and waits for it, as a connection
// to a host does. When its context ends it ends the command.
type Runner func(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) error

// Start starts the krig-agent at path and waits until it has greeted. ctx
// bounds the start alone: the agent lives until [Client.Close], or until the connection breaks; calls
// then fail with the runner's error and the last words of the agent.
func Start(ctx context.Context, run Runner, path string) (*Client, error) {
	life, kill := context.WithCancelCause(context.WithoutCancel(ctx))
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	var said tail
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		err := run(life, []string{path, "serve"}, inR, outW, &said)
		if err != nil {
			err = fmt.Errorf("krig-agent has ended: %w", said.beside(err))
		}
		inR.CloseWithError(io.ErrClosedPipe)
		outW.CloseWithError(err) // nil is io.EOF
	}()
	c := NewClient(outR, inW)
	c.kill, c.gone = kill, gone
	go func() {
		<-c.ended
		outR.Close() // whatever else it writes has no reader: it must not wait for one
	}()
	if err := c.Ready(ctx); err != nil {
		kill(errors.New("it did not start"))
		c.Close() // the reason is err
		return nil, fmt.Errorf("starting krig-agent: %w", err)
	}
	return c, nil
}

// tail keeps the end of what the agent says on standard error.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const limit = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if over := len(t.text) - limit; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(p), nil
}

// beside adds the agent's words to an error that does not hold them yet.
func (t *tail) beside(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	words := strings.TrimSpace(string(t.text))
	if words == "" || strings.Contains(err.Error(), words) {
		return err
	}
	return fmt.Errorf("%w: %s", err, words)
}
