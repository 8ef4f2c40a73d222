// Package agent is the protocol between krig and krig-agent: length-framed
// messages on one SSH session's stdin and stdout, several calls at once, stdin
// the lease. Both programs import it; it is apart from internal/remote so that
// the agent carries no SSH.
package agent

import (
	"context"
	"encoding/json"
	"io"
)

// Message is one message of a call, from the agent.
type Message struct {
	Kind string // chosen by the verb, such as "line", "interval", "ready"
	Body json.RawMessage
}

// Client talks to one krig-agent.
type Client struct{}

// NewClient speaks the protocol over the agent's standard output (r) and input
// (w). Closing w ends the agent and everything it started.
func NewClient(r io.Reader, w io.WriteCloser) *Client { panic("being built") }

// Call is one running verb on the agent.
type Call struct{}

// Call starts a verb with arguments that it reads as JSON.
func (c *Client) Call(ctx context.Context, verb string, args any) (*Call, error) {
	panic("being built")
}

// Close closes the lease and waits for the agent's end.
func (c *Client) Close() error { panic("being built") }

// Next returns the verb's next message; io.EOF after its good end, the verb's
// error or the connection's otherwise.
func (c *Call) Next(ctx context.Context) (Message, error) { panic("being built") }

// Send gives the running verb further input.
func (c *Call) Send(kind string, body any) error { panic("being built") }

// Cancel asks the verb to end early; Next goes on until io.EOF or an error.
func (c *Call) Cancel() error { panic("being built") }

// Verb is one thing the agent can do. It returns when it is done or ctx ends.
type Verb func(ctx context.Context, s *Session) error

// Session is the agent's side of a call.
type Session struct {
	Args json.RawMessage
}

// Emit sends a message to the caller. It blocks when the caller reads too slowly.
func (s *Session) Emit(kind string, body any) error { panic("being built") }

// Receive waits for the caller's next input.
func (s *Session) Receive(ctx context.Context) (Message, error) { panic("being built") }

// Serve runs verbs until in ends; then every running verb's context ends, and
// Serve returns when all have returned.
func Serve(ctx context.Context, in io.Reader, out io.Writer, verbs map[string]Verb) error {
	panic("being built")
}
