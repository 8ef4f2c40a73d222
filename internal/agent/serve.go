package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// silenceLimit is how long nothing may be heard of krig.
const silenceLimit = time.Minute

// flushLimit is how long the last messages may take when verbs have ended.
const flushLimit = 2 * time.Second

// Verb is one thing the agent can do. It returns when it is done or ctx ends.
// When ctx ends by a cancel it may still emit.
type Verb func(ctx context.Context, s *Session) error

// Session is the agent's side of a call.
type Session struct {
	Args json.RawMessage

	id      uint64
	server  *server
	queue   *queue
	credits *credits
	cancel  context.CancelCauseFunc

	mu     sync.Mutex
	unread int
}

// errCanceled is the cause of a verb's context after a cancel.
var errCanceled = fmt.Errorf("cancelled by krig: %w", context.Canceled)

type server struct {
	verbs map[string]Verb
	out   *writer
	gone  <-chan struct{} // closed when the lease has ended
	wg    sync.WaitGroup

	mu       sync.Mutex
	sessions map[uint64]*Session
}

// Serve runs verbs until in ends or is silent for a minute, ctx ends, or out
// can be written no more; then every running verb's context ends with
// [ErrLease], and Serve returns when all have returned. The end of in is no error.
func Serve(ctx context.Context, in io.Reader, out io.Writer, verbs map[string]Verb) error {
	if _, err := io.WriteString(out, greeting()); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	lease, end := context.WithCancelCause(context.WithoutCancel(ctx))
	s := &server{verbs: verbs, out: newWriter(out), gone: lease.Done(), sessions: map[uint64]*Session{}}
	read := make(chan error, 2)
	silence := time.AfterFunc(silenceLimit, func() { read <- fmt.Errorf("nothing was heard of krig for %v", silenceLimit) })
	defer silence.Stop()
	heard := func() { silence.Reset(silenceLimit) }
	go func() { read <- s.read(lease, bufio.NewReaderSize(in, 64<<10), heard) }()
	var err error
	select {
	case err = <-read:
	case <-ctx.Done(): // the reader stays in its read; the program ends
		err = context.Cause(ctx)
	case <-s.out.done: // krig reads no more
		err = s.out.err
	}
	end(fmt.Errorf("%w: %w", ErrLease, err))
	s.wg.Wait()
	s.out.close()
	select {
	case <-s.out.done:
	case <-time.After(flushLimit):
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (s *server) read(lease context.Context, r *bufio.Reader, heard func()) error {
	for {
		f, err := readFrame(r)
		if err != nil {
			return err
		}
		heard()
		s.handle(lease, f)
	}
}

func (s *server) handle(lease context.Context, f frame) {
	if f.Op == opCall {
		s.begin(lease, f)
		return
	}
	s.mu.Lock()
	session := s.sessions[f.Call]
	s.mu.Unlock()
	if session == nil {
		return // it has just ended
	}
	switch f.Op {
	case opData:
		session.queue.put(Message{Kind: f.Kind, Body: f.Body})
	case opCredit:
		session.credits.give(f.Credit)
	case opCancel:
		session.cancel(errCanceled)
	}
}

// begin starts a verb.
func (s *server) begin(lease context.Context, f frame) {
	ctx, cancel := context.WithCancelCause(lease)
	session := &Session{Args: f.Body, id: f.Call, server: s, queue: newQueue(), credits: newCredits(), cancel: cancel}
	s.mu.Lock()
	_, twice := s.sessions[f.Call]
	if !twice {
		s.sessions[f.Call] = session
	}
	s.mu.Unlock()
	if twice {
		cancel(nil)
		return
	}
	s.wg.Go(func() {
		defer cancel(nil)
		err := s.run(ctx, f.Kind, session)
		canceled := errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), errCanceled)
		s.mu.Lock()
		delete(s.sessions, f.Call)
		s.mu.Unlock()
		end := frame{Call: f.Call, Op: opEnd, Canceled: canceled}
		if err != nil {
			end.Error = err.Error()
		}
		_ = s.send(end) // krig is gone when it fails
	})
}

func (s *server) send(f frame) error {
	bytes, err := encode(f)
	if err != nil {
		return err
	}
	return s.out.send(bytes, s.gone)
}

func (s *server) run(ctx context.Context, name string, session *Session) error {
	verb := s.verbs[name]
	if verb == nil {
		known := slices.Sorted(maps.Keys(s.verbs))
		return fmt.Errorf("no such verb; there are %s", strings.Join(known, ", "))
	}
	return verb(ctx, session)
}

// Emit sends a message to the caller. It blocks when the caller reads too
// slowly, and fails with [ErrLease] when krig is gone.
func (s *Session) Emit(kind string, body any) error {
	bytes, price, err := data(s.id, kind, body)
	if err != nil {
		return err
	}
	if !s.credits.take(price, s.server.gone) {
		return ErrLease
	}
	if err := s.server.out.send(bytes, s.server.gone); err != nil {
		return fmt.Errorf("%w: %w", ErrLease, err)
	}
	return nil
}

// Receive waits for the caller's next input.
func (s *Session) Receive(ctx context.Context) (Message, error) {
	m, err := s.queue.take(ctx)
	if err != nil {
		return m, err
	}
	s.mu.Lock()
	s.unread += cost(m)
	give := 0
	if s.unread >= window/2 {
		give, s.unread = s.unread, 0
	}
	s.mu.Unlock()
	if give > 0 {
		return m, s.server.send(frame{Call: s.id, Op: opCredit, Credit: give})
	}
	return m, nil
}
