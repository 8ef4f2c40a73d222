package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
)

// markWriter takes the announcement out of a command's standard output, with
// whatever came before it, and passes on the rest.
type markWriter struct {
	mark  []byte
	to    io.Writer // nil discards
	ready chan struct{}

	mu        sync.Mutex
	held      []byte
	announced bool
	group     int
}

func newMarkWriter(mark string, to io.Writer) *markWriter {
	return &markWriter{mark: []byte(mark + " "), to: to, ready: make(chan struct{})}
}

// found tells whether the command has begun, and its process group; 0 when
// that is not known.
func (w *markWriter) found() (begun bool, group int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.announced, w.group
}

func (w *markWriter) Write(p []byte) (int, error) {
	rest := p
	if begun, _ := w.found(); !begun {
		if rest = w.search(p); len(rest) == 0 {
			return len(p), nil
		}
	}
	if w.to == nil {
		return len(p), nil
	}
	if _, err := w.to.Write(rest); err != nil {
		return 0, err
	}
	return len(p), nil
}

// search looks for the announcement and returns what follows it.
func (w *markWriter) search(p []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, p...)
	at := bytes.Index(w.held, w.mark)
	if at < 0 {
		// Noise: only what may be the beginning of the mark is kept.
		w.held = bytes.Clone(w.held[max(0, len(w.held)-len(w.mark)):])
		return nil
	}
	line, rest, whole := bytes.Cut(w.held[at+len(w.mark):], []byte("\n"))
	if !whole {
		return nil
	}
	w.group, _ = strconv.Atoi(string(line)) // 0 where /proc cannot be read
	w.announced, w.held = true, nil
	close(w.ready)
	return rest
}

// clip keeps the head and the tail of what is written.
type clip struct {
	mu         sync.Mutex
	head, tail []byte
	dropped    int64
}

const clipHalf = 4 << 10

func (c *clip) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	room := min(clipHalf-len(c.head), len(p))
	c.head = append(c.head, p[:room]...)
	p = p[room:]
	if over := len(p) - clipHalf; over > 0 {
		c.dropped += int64(over)
		p = p[over:]
	}
	if over := len(c.tail) + len(p) - clipHalf; over > 0 {
		c.dropped += int64(over)
		c.tail = append(c.tail[:0], c.tail[over:]...)
	}
	c.tail = append(c.tail, p...)
	return n, nil
}

func (c *clip) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped == 0 {
		return string(c.head) + string(c.tail)
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", c.head, c.dropped, c.tail)
}

// headWriter keeps the first bytes of what is written and drops the rest.
type headWriter struct {
	data  []byte
	limit int
}

func (w *headWriter) Write(p []byte) (int, error) {
	w.data = append(w.data, p[:min(len(p), w.limit-len(w.data))]...)
	return len(p), nil
}

// guardWriter ends the command when its output cannot be written. What still
// comes is dropped: a host that could not get rid of it would not end the session.
type guardWriter struct {
	to     io.Writer
	fail   context.CancelCauseFunc
	failed bool
}

func guarded(to io.Writer, fail context.CancelCauseFunc) io.Writer {
	if to == nil {
		return nil
	}
	return &guardWriter{to: to, fail: fail}
}

func (w *guardWriter) Write(p []byte) (int, error) {
	if w.failed {
		return len(p), nil
	}
	if _, err := w.to.Write(p); err != nil {
		w.failed = true
		w.fail(fmt.Errorf("writing its output: %w", err))
	}
	return len(p), nil
}

// sourceReader remembers an error of the reader, apart from errors of whoever
// is written to.
type sourceReader struct {
	from io.Reader
	err  error
}

func (r *sourceReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
