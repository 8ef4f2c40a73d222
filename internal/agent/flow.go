package agent

import (
	"context"
	"io"
	"sync"
)

// window is how many bytes of one call may be unread by the other side. The
// message that exceeds it is still sent.
const window = 1 << 20

// overhead is what a message counts beside its body, so that empty ones count.
const overhead = 64

func cost(m Message) int { return len(m.Body) + len(m.Kind) + overhead }

// credits are the bytes that may still be sent.
type credits struct {
	mu   sync.Mutex
	left int
	more chan struct{} // closed when there may be some again
}

func newCredits() *credits { return &credits{left: window, more: make(chan struct{})} }

// take waits until something may be sent, and takes n, which may be more than
// there is. It returns false when done closes first.
func (c *credits) take(n int, done <-chan struct{}) bool {
	for {
		c.mu.Lock()
		if c.left > 0 {
			c.left -= n
			c.mu.Unlock()
			return true
		}
		more := c.more
		c.mu.Unlock()
		select {
		case <-more:
		case <-done:
			return false
		}
	}
}

func (c *credits) give(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left += n
	if c.left > 0 {
		close(c.more)
		c.more = make(chan struct{})
	}
}

// queue holds one call's messages until they are read. What the window allows
// bounds it.
type queue struct {
	mu       sync.Mutex
	messages []Message
	err      error // why no more come; io.EOF for a good end
	changed  chan struct{}
}

func newQueue() *queue { return &queue{changed: make(chan struct{})} }

func (q *queue) notify() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) put(m Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	q.messages = append(q.messages, m)
	q.notify()
}

// end says why no more come; the first reason counts.
func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
		q.notify()
	}
}

// take waits for the next message. What came before the end is still handed out.
func (q *queue) take(ctx context.Context) (Message, error) {
	for {
		q.mu.Lock()
		if len(q.messages) > 0 {
			m := q.messages[0]
			q.messages[0] = Message{}
			q.messages = q.messages[1:]
			q.mu.Unlock()
			return m, nil
		}
		err, changed := q.err, q.changed
		q.mu.Unlock()
		if err != nil {
			return Message{}, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Message{}, context.Cause(ctx)
		}
	}
}

// writer sends frames in order, many at a time when they come fast.
type writer struct {
	frames chan []byte
	stop   chan struct{} // closed when no more are wanted
	done   chan struct{} // closed when the last has been written, or none can be
	once   sync.Once
	err    error // set before done closes
}

func newWriter(w io.Writer) *writer {
	wr := &writer{frames: make(chan []byte, 16), stop: make(chan struct{}), done: make(chan struct{})}
	go wr.run(w)
	return wr
}

func (w *writer) run(to io.Writer) {
	defer close(w.done)
	for {
		select {
		case data := <-w.frames:
			if w.err = w.write(to, data); w.err != nil {
				return
			}
		case <-w.stop:
			w.err = w.drain(to)
			return
		}
	}
}

// write sends a frame together with those that already wait.
func (w *writer) write(to io.Writer, data []byte) error {
	const batch = 256 << 10
	for len(data) < batch {
		select {
		case more := <-w.frames:
			data = append(data, more...)
			continue
		default:
		}
		break
	}
	_, err := to.Write(data)
	return err
}

func (w *writer) drain(to io.Writer) error {
	for {
		select {
		case data := <-w.frames:
			if err := w.write(to, data); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// send hands a frame's bytes to the writer. It blocks while the other side
// reads nothing at all, until giveUp closes.
func (w *writer) send(data []byte, giveUp <-chan struct{}) error {
	select {
	case w.frames <- data:
		return nil
	case <-w.done:
		if w.err != nil {
			return w.err
		}
		return io.ErrClosedPipe
	case <-giveUp:
		return io.ErrClosedPipe
	}
}

func (w *writer) close() { w.once.Do(func() { close(w.stop) }) }
