package rundir

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Ledger is the append-only record of everything created or changed, written
// and synced before it is done. Its methods may be called from several
// goroutines, and several processes may append to one ledger.
type Ledger struct {
	path string
	mu   sync.Mutex
	file *os.File // opened by the first append
}

// Entry is one thing done to the world.
type Entry struct {
	ID     string    `json:"id"`               // set by the ledger where it is empty
	Kind   string    `json:"kind"`             // container, network, loop, throttle, lxcfs, directory, file, child, ...
	Scope  string    `json:"scope"`            // host it is on; "" is this machine
	Ref    string    `json:"ref"`              // what finds it again: a name, a path, a pid with start time and boot id
	Before string    `json:"before,omitempty"` // what to put back
	State  State     `json:"state"`
	At     time.Time `json:"at"` // when this line was written
}

// State of an entry.
type State string

// The states.
const (
	Intent State = "intent"
	Done   State = "done"
	Undone State = "undone"
)

// Child is the kind of a process of krig's that outlives krig when krig is
// killed; its Ref is its [Owner] and, after a space, what it is.
const Child = "child"

// Do records the intent, does the thing, and records that it is done. When do
// fails the intent stays: down looks for what it may have left.
func (l *Ledger) Do(e Entry, do func() error) error {
	if e.ID == "" {
		e.ID = newID()
	}
	e.State = Intent
	if err := l.append(e); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	e.State = Done
	return l.append(e)
}

// Undo does the undoing of an entry and records it. When undo fails the entry stands.
func (l *Ledger) Undo(e Entry, undo func() error) error {
	if err := undo(); err != nil {
		return err
	}
	e.State = Undone
	return l.append(e)
}

// Started records a child process that runs, and returns its entry, which
// [Ledger.Undo] ends once the process has been waited for.
func (l *Ledger) Started(pid int, what string) (Entry, error) {
	o, err := OwnerOf(pid)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{ID: newID(), Kind: Child, Ref: o.String() + " " + what, State: Done}
	return e, l.append(e)
}

// HostGone marks as undone whatever stood on a host that is no more.
func (l *Ledger) HostGone(host string) error {
	standing, err := l.Standing()
	for _, e := range standing {
		if e.Scope == host && host != "" {
			err = errors.Join(err, l.Undo(e, func() error { return nil }))
		}
	}
	return err
}

// Standing lists the entries that are not undone, newest first, each in its latest state.
func (l *Ledger) Standing() ([]Entry, error) {
	f, err := os.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	defer f.Close()
	all, err := readEntries(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", l.path, err)
	}
	return standing(all), nil
}

// standing keeps the last state of each entry, in reverse order of their first lines.
func standing(all []Entry) []Entry {
	last := make(map[string]Entry, len(all))
	var order []string
	for _, e := range all {
		if _, seen := last[e.ID]; !seen {
			order = append(order, e.ID)
		}
		last[e.ID] = e
	}
	var out []Entry
	for _, id := range slices.Backward(order) {
		if e := last[id]; e.State != Undone {
			out = append(out, e)
		}
	}
	return out
}

// readEntries reads a ledger. A last line that was torn by a crash is left
// out: it was not synced, so what it announced had not begun.
func readEntries(r io.Reader) ([]Entry, error) {
	var out []Entry
	br := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := br.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		e, err := parseEntry(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, e)
	}
}

func parseEntry(line []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, err
	}
	if e.ID == "" {
		return Entry{}, errors.New("an entry without id")
	}
	switch e.State {
	case Intent, Done, Undone:
		return e, nil
	}
	return Entry{}, fmt.Errorf("unknown state %q", e.State)
}

// append writes one line and syncs it, alone among all processes.
func (l *Ledger) append(e Entry) error {
	e.At = time.Now().UTC()
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing the ledger %s: %w", l.path, err)
	}
	return nil
}

func (l *Ledger) write(line []byte) (err error) {
	if err := l.open(); err != nil {
		return err
	}
	if err := flock(l.file, unix.LOCK_EX); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flock(l.file, unix.LOCK_UN)) }()
	if err := mendTail(l.file); err != nil {
		return err
	}
	if _, err := l.file.Write(line); err != nil {
		return err
	}
	return l.file.Sync()
}

func (l *Ledger) open() error {
	if l.file != nil {
		return nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	l.file = f
	return nil
}

func (l *Ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}

// mendTail cuts off a last line without an end, which a crash tore.
func mendTail(f *os.File) error {
	const longest = 64 << 10
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return err
	}
	tail := make([]byte, min(info.Size(), longest))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil {
		return err
	}
	torn := len(tail) - 1 - bytes.LastIndexByte(tail, '\n')
	if torn == 0 {
		return nil
	}
	if torn == longest {
		return errors.New("its end is not a ledger's")
	}
	return f.Truncate(info.Size() - int64(torn))
}

// flock waits for a lock; a signal does not end the wait.
func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return hex.EncodeToString(b[:])
}
