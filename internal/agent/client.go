package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// greetingLimit is how long an agent may take until it greets.
	greetingLimit = 30 * time.Second
	// closeLimit is how long an agent may take to end everything and go.
	closeLimit = 20 * time.Second
	// aliveEvery is how often krig says that it is there.
	aliveEvery = 5 * time.Second
)

// Client talks to one krig-agent. It may be used from several goroutines.
type Client struct {
	in  io.WriteCloser
	out *writer

	greeted chan struct{} // closed when the agent has greeted, or cannot
	ended   chan struct{} // closed when nothing more comes from the agent

	mu    sync.Mutex
	calls map[uint64]*Call
	last  uint64
	err   error // why nothing more comes; set before ended closes

	// Set by Start: how to end the agent that does not go, and when it is gone.
	kill context.CancelCauseFunc
	gone <-chan struct{}

	closeOnce sync.Once
	closeErr  error
}

// NewClient speaks the protocol over the agent's standard output (r) and input
// (w). Closing w ends the agent and everything it started. The starter of the
// client closes it.
func NewClient(r io.Reader, w io.WriteCloser) *Client {
	c := &Client{
		in: w, out: newWriter(w),
		greeted: make(chan struct{}), ended: make(chan struct{}),
		calls: map[uint64]*Call{},
	}
	go c.read(bufio.NewReaderSize(r, 64<<10))
	go c.sayAlive()
	return c
}

// sayAlive keeps the lease until the agent or the client ends.
func (c *Client) sayAlive() {
	tick := time.NewTicker(aliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.ended:
			return
		}
		if err := c.send(frame{Op: opAlive}); err != nil {
			return // the client is closed
		}
	}
}

// read hands frames to their calls until the agent ends.
func (c *Client) read(r *bufio.Reader) {
	err := greet(r)
	if err != nil {
		c.fail(err)
		close(c.greeted)
		return
	}
	close(c.greeted)
	for {
		f, err := readFrame(r)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("krig-agent has ended")
			}
			c.fail(err)
			return
		}
		c.handle(f)
	}
}

// greet reads the agent's first line.
func greet(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if len(line) == 0 {
		if errors.Is(err, io.EOF) {
			err = errors.New("it ended without a word")
		}
		return fmt.Errorf("%w: %w", ErrGreeting, err)
	}
	words := strings.Fields(string(line))
	if len(words) != 3 || words[0] != "krig-agent" || err != nil {
		return fmt.Errorf("%w: it began with %.200q", ErrGreeting, line)
	}
	if number, err := strconv.Atoi(words[1]); err != nil || number != Protocol {
		return fmt.Errorf("%w: it speaks protocol %s, this krig %d; build both from one source (make build)", ErrGreeting, words[1], Protocol)
	}
	mine, its := BuildName(), words[2]
	if mine != unknownBuild && its != unknownBuild && mine != its {
		return fmt.Errorf("%w: it was built from %s, this krig from %s; build both from one source (make build)", ErrGreeting, its, mine)
	}
	return nil
}

func greeting() string { return fmt.Sprintf("krig-agent %d %s\n", Protocol, BuildName()) }

func (c *Client) handle(f frame) {
	c.mu.Lock()
	call := c.calls[f.Call]
	if f.Op == opEnd {
		delete(c.calls, f.Call)
	}
	c.mu.Unlock()
	if call == nil {
		return
	}
	switch f.Op {
	case opData:
		call.queue.put(Message{Kind: f.Kind, Body: f.Body})
	case opCredit:
		call.credits.give(f.Credit)
	case opEnd:
		call.finish(f)
	}
}

// fail ends every call for want of an agent.
func (c *Client) fail(err error) {
	c.mu.Lock()
	c.err = err
	calls := c.calls
	c.calls = map[uint64]*Call{}
	c.mu.Unlock()
	close(c.ended)
	for _, call := range calls {
		call.stop(err)
	}
}

// Ready waits until the agent has greeted, at most 30 s.
func (c *Client) Ready(ctx context.Context) error {
	limit := time.NewTimer(greetingLimit)
	defer limit.Stop()
	select {
	case <-c.greeted:
		select {
		case <-c.ended:
			return c.reason()
		default:
			return nil
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return fmt.Errorf("%w: not a word within %v", ErrGreeting, greetingLimit)
	}
}

// Ended is closed when the agent is gone; running calls then have its error.
func (c *Client) Ended() <-chan struct{} { return c.ended }

func (c *Client) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Call starts a verb with arguments that it reads as JSON. The verb runs until
// it ends by itself, [Call.Cancel] is called, or ctx ends, which cancels it.
func (c *Client) Call(ctx context.Context, verb string, args any) (*Call, error) {
	if err := c.Ready(ctx); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%s: encoding its arguments: %w", verb, err)
	}
	call, err := c.register(verb)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	if err := c.send(frame{Call: call.id, Op: opCall, Kind: verb, Body: raw}); err != nil {
		c.mu.Lock()
		delete(c.calls, call.id)
		c.mu.Unlock()
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	call.watch(ctx)
	return call, nil
}

func (c *Client) send(f frame) error {
	bytes, err := encode(f)
	if err != nil {
		return err
	}
	return c.out.send(bytes, c.ended)
}

func (c *Client) register(verb string) (*Call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	c.last++
	call := &Call{
		client: c, verb: verb, id: c.last,
		queue: newQueue(), credits: newCredits(), over: make(chan struct{}),
	}
	c.calls[call.id] = call
	return call, nil
}

// Close closes the lease and waits for the agent's end; one that has not gone
// after 20 s is killed, and that is an error. It may be called again.
func (c *Client) Close() error {
	c.closeOnce.Do(func() { c.closeErr = c.close() })
	return c.closeErr
}

func (c *Client) close() error {
	c.out.close()
	select {
	case <-c.out.done:
	case <-time.After(time.Second): // the other side does not read: the lease counts more
	}
	err := c.in.Close()
	if err != nil {
		err = fmt.Errorf("closing the lease: %w", err)
	}
	select {
	case <-c.ended:
	case <-time.After(closeLimit):
		err = errors.Join(err, fmt.Errorf("krig-agent has not ended within %v of its lease", closeLimit))
		if c.kill != nil {
			c.kill(err)
		}
	}
	if c.gone != nil {
		<-c.gone // bounded: the lease has ended or its context has
	}
	return err
}

// Call is one running verb on the agent.
type Call struct {
	client  *Client
	verb    string
	id      uint64
	queue   *queue
	credits *credits
	over    chan struct{} // closed when the verb has returned
	once    sync.Once

	mu      sync.Mutex
	unread  int         // bytes handed out and not yet given back as credit
	unwatch func() bool // ends watch
}

// watch cancels the verb when ctx ends.
func (c *Call) watch(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended() {
		c.unwatch = context.AfterFunc(ctx, func() { _ = c.Cancel() }) // its error is Next's too
	}
}

// Next returns the verb's next message; io.EOF after its good end, the verb's
// error (*[Error]) or the connection's otherwise. A verb that ends because it was cancelled has ended well.
func (c *Call) Next(ctx context.Context) (Message, error) {
	m, err := c.queue.take(ctx)
	if err != nil {
		return m, err
	}
	c.mu.Lock()
	c.unread += cost(m)
	give := 0
	if c.unread >= window/2 {
		give, c.unread = c.unread, 0
	}
	c.mu.Unlock()
	if give > 0 {
		_ = c.client.send(frame{Call: c.id, Op: opCredit, Credit: give}) // fails only when the call does
	}
	return m, nil
}

// Send gives the running verb further input. It blocks while the verb leaves much of it unread.
func (c *Call) Send(kind string, body any) error {
	bytes, price, err := data(c.id, kind, body)
	if err != nil {
		return fmt.Errorf("%s: %w", c.verb, err)
	}
	if c.ended() || !c.credits.take(price, c.over) {
		return fmt.Errorf("%s: it has ended", c.verb)
	}
	if err := c.client.out.send(bytes, c.client.ended); err != nil {
		return fmt.Errorf("%s: %w", c.verb, err)
	}
	return nil
}

func (c *Call) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// Cancel asks the verb to end early; Next goes on until io.EOF or an error.
func (c *Call) Cancel() error {
	if c.ended() {
		return nil
	}
	if err := c.client.send(frame{Call: c.id, Op: opCancel}); err != nil {
		return fmt.Errorf("%s: cancelling it: %w", c.verb, err)
	}
	return nil
}

// finish takes the agent's word that the verb has returned.
func (c *Call) finish(f frame) {
	switch {
	case f.Error == "" || f.Canceled:
		c.stop(io.EOF)
	default:
		c.stop(&Error{Verb: c.verb, Reason: f.Error})
	}
}

func (c *Call) stop(err error) {
	c.once.Do(func() {
		c.queue.end(err)
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.over)
		if c.unwatch != nil {
			c.unwatch()
		}
	})
}
