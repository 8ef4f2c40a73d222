package child

import (
	"bytes"
	"os"
	"time"
)

// follow hands on what is written into a file, line by line, until the
// function that it returns has been called, which returns after the last.
func (c Command) follow(f *os.File) (end func()) {
	if c.Lines == nil {
		return func() {}
	}
	ended, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		l := lines{f: f, tell: c.Lines}
		for {
			select {
			case <-tick.C:
				l.read()
			case <-ended:
				l.read()
				return
			}
		}
	}()
	return func() { close(ended); <-told }
}

// lines reads a file that grows.
type lines struct {
	f    *os.File
	at   int64
	part []byte // of a line whose end is not there yet
	tell func(string)
}

func (l *lines) read() {
	buffer := make([]byte, 64<<10)
	for {
		n, err := l.f.ReadAt(buffer, l.at)
		l.at += int64(n)
		l.part = append(l.part, buffer[:n]...)
		for {
			line, rest, ok := bytes.Cut(l.part, []byte("\n"))
			if !ok {
				break
			}
			l.part = rest
			l.tell(string(line))
		}
		if n == 0 || err != nil {
			return
		}
	}
}
