package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"sync"

	"golang.org/x/sync/semaphore"

	"krig/internal/rundir"
)

// eachAtOnce is how many hosts [Fleet.Each] works on at a time.
const eachAtOnce = 32

// Fleet keeps one open connection a host, and one to a jump host for all hosts
// behind it. It may be used from several
// goroutines; its starter closes it.
type Fleet struct {
	ways *ways // shared: hosts behind one jump host share the connection to it

	mu     sync.Mutex
	hosts  map[string]*member
	closed bool
}

// member is one host and its connection. dial is held by whoever dials.
type member struct {
	host rundir.Host
	dial *semaphore.Weighted
	conn *Conn // guarded by dial
	gone bool  // guarded by dial: dropped, never dialled again
}

// NewFleet makes a fleet that knows only "machine", this machine. keyDir is the run directory, below
// which key files lie. It dials lazily: [Fleet.Conn] connects at the first use.
func NewFleet(keyDir string) *Fleet {
	f := &Fleet{ways: newWays(keyDir), hosts: map[string]*member{}}
	f.hosts[machineName] = newMember(rundir.Host{Name: machineName})
	return f
}

func newMember(h rundir.Host) *member {
	return &member{host: h, dial: semaphore.NewWeighted(1)}
}

// Add makes hosts known. A host that is known already and is reached in
// another way than before (it was made again) is dialled anew.
func (f *Fleet) Add(hosts ...rundir.Host) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range hosts {
		old := f.hosts[h.Name]
		if old != nil && reflect.DeepEqual(old.host.SSH, h.SSH) {
			continue
		}
		f.hosts[h.Name] = newMember(h)
		if old != nil {
			go old.close() // nobody waits for a host that is no more
		}
	}
}

// Drop closes the connections of hosts that leave.
func (f *Fleet) Drop(names ...string) error {
	f.mu.Lock()
	var left []*member
	for _, n := range names {
		if m := f.hosts[n]; m != nil {
			left = append(left, m)
			delete(f.hosts, n)
		}
	}
	f.mu.Unlock()
	return closeAll(left)
}

// Conn returns the connection to a host, dialling when there is none or the
// last one broke. The name "machine" is this machine. The fleet closes it.
func (f *Fleet) Conn(ctx context.Context, name string) (*Conn, error) {
	f.mu.Lock()
	m, closed := f.hosts[name], f.closed
	f.mu.Unlock()
	switch {
	case closed:
		return nil, &hostError{host: name, doing: "connecting", err: net.ErrClosed}
	case m == nil:
		return nil, &hostError{host: name, doing: "connecting", err: errors.New("no such host in the rig")}
	}
	return m.open(ctx, f.ways)
}

func (m *member) open(ctx context.Context, w *ways) (*Conn, error) {
	if err := m.dial.Acquire(ctx, 1); err != nil {
		return nil, &hostError{host: m.host.Name, doing: "connecting", err: context.Cause(ctx)}
	}
	defer m.dial.Release(1)
	if m.gone {
		return nil, &hostError{host: m.host.Name, doing: "connecting", err: net.ErrClosed}
	}
	if m.conn != nil {
		if !m.conn.Broken() {
			return m.conn, nil
		}
		m.conn.Close() // of a broken connection nothing is left to close
		m.conn = nil
	}
	c, err := w.dial(ctx, m.host, standing())
	if err != nil {
		return nil, err
	}
	m.conn = c
	return c, nil
}

func (m *member) close() error {
	if err := m.dial.Acquire(context.Background(), 1); err != nil { // bounded by the dial that holds it
		return err
	}
	defer m.dial.Release(1)
	m.gone = true
	if m.conn == nil {
		return nil
	}
	err := m.conn.Close()
	m.conn = nil
	return err
}

// Each runs do on all named hosts side by side, at most 32 at a time, and
// returns a *HostsError of those that failed; it waits for all. Hosts that
// have not begun when ctx ends fail with its cause.
func (f *Fleet) Each(ctx context.Context, names []string, do func(ctx context.Context, name string, c *Conn) error) error {
	failed := &HostsError{Total: len(names)}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := semaphore.NewWeighted(eachAtOnce)
	for _, name := range names {
		wg.Go(func() {
			if err := f.one(ctx, slots, name, do); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed.Failed = append(failed.Failed, HostError{Host: name, Err: err})
			}
		})
	}
	wg.Wait()
	return failed.orNil()
}

func (f *Fleet) one(ctx context.Context, slots *semaphore.Weighted, name string, do func(context.Context, string, *Conn) error) error {
	if err := slots.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("not begun: %w", context.Cause(ctx))
	}
	defer slots.Release(1)
	c, err := f.Conn(ctx, name)
	if err != nil {
		return err
	}
	return do(ctx, name, c)
}

// Close closes every connection. The fleet makes none afterwards.
func (f *Fleet) Close() error {
	f.mu.Lock()
	f.closed = true
	var all []*member
	for _, m := range f.hosts {
		all = append(all, m)
	}
	f.hosts = map[string]*member{}
	f.mu.Unlock()
	return closeAll(all)
}

func closeAll(members []*member) error {
	errs := make([]error, len(members))
	var wg sync.WaitGroup
	for i, m := range members {
		wg.Go(func() { errs[i] = m.close() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
