package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"krig/internal/rundir"
)

// testFleet is a fleet whose hosts are all the same server.
func testFleet(t *testing.T, names ...string) (*Fleet, *testServer) {
	t.Helper()
	s := startTestServer(t)
	f := NewFleet(s.dir)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, n := range names {
		h := s.host
		h.Name = n
		f.Add(h)
	}
	return f, s
}

func (s *testServer) loggedIn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

func TestFleetDialsOnce(t *testing.T) {
	f, s := testFleet(t, "b1", "b2")
	if s.loggedIn() != 0 {
		t.Error("it dialled before it was asked")
	}
	var wg sync.WaitGroup
	conns := make([]*Conn, 20)
	for i := range conns {
		wg.Go(func() {
			c, err := f.Conn(limited(t, 20*time.Second), "b1")
			if err != nil {
				t.Error(err)
			}
			conns[i] = c
		})
	}
	wg.Wait()
	if s.loggedIn() != 1 || len(slices.Compact(conns)) != 1 {
		t.Errorf("%d logins", s.loggedIn())
	}
}

func TestFleetDialsAnewWhenBroken(t *testing.T) {
	f, s := testFleet(t, "b1")
	ctx := limited(t, 20*time.Second)
	first, err := f.Conn(ctx, "b1")
	if err != nil {
		t.Fatal(err)
	}
	s.cut()
	eventually(t, "the connection is known to be broken", first.Broken)
	second, err := f.Conn(ctx, "b1")
	if err != nil || second == first {
		t.Fatalf("the same connection, %v", err)
	}
	if got, err := second.Output(ctx, "echo", "x"); err != nil || got != "x\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestFleetHostsComeAndGo(t *testing.T) {
	f, s := testFleet(t, "b1")
	ctx := limited(t, 20*time.Second)
	c, err := f.Conn(ctx, "b1")
	if err != nil {
		t.Fatal(err)
	}
	h := s.host
	h.Name = "b1"
	f.Add(h) // as it was
	if again, err := f.Conn(ctx, "b1"); err != nil || again != c {
		t.Errorf("an unchanged host was dialled anew, %v", err)
	}
	other := startTestServer(t) // made again, with another key and port
	h.SSH = other.host.SSH
	h.SSH.KeyFile = other.dir + "/id"
	f.Add(h)
	if again, err := f.Conn(ctx, "b1"); err != nil || again == c || other.loggedIn() != 1 {
		t.Errorf("a changed host was not dialled anew, %v", err)
	}
	eventually(t, "the connection to the former host is closed", c.Broken)
	if err := f.Drop("b1", "b9"); err != nil {
		t.Error(err)
	}
	if _, err := f.Conn(ctx, "b1"); err == nil || err.Error() != "b1: connecting: no such host in the rig" {
		t.Errorf("a dropped host: %v", err)
	}
	if local, err := f.Conn(ctx, "machine"); err != nil || local.Host() != "machine" {
		t.Errorf("this machine: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Conn(ctx, "machine"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestEach(t *testing.T) {
	f, _ := testFleet(t, "b1", "b2", "b3")
	errBad := errors.New("bad disk")
	var did atomic.Int64
	err := f.Each(limited(t, 20*time.Second), []string{"b3", "b1", "b2", "machine", "b9"}, func(ctx context.Context, name string, c *Conn) error {
		did.Add(1)
		if c.Host() != name {
			t.Errorf("%s got the connection of %s", name, c.Host())
		}
		if name == "b2" || name == "b3" {
			return fmt.Errorf("making the disk: %w", errBad)
		}
		_, err := c.Output(ctx, "true")
		return err
	})
	var hosts *HostsError
	if !errors.As(err, &hosts) || hosts.Total != 5 || len(hosts.Failed) != 3 || hosts.Failed[0].Host != "b2" || !errors.Is(err, errBad) {
		t.Errorf("got %v", err)
	}
	if want := "3 of 5 hosts failed:\n  b2: making the disk: bad disk\n  b3: making the disk: bad disk\n  b9: connecting: no such host in the rig"; err.Error() != want {
		t.Errorf("got  %v\nwant %v", err, want)
	}
	if did.Load() != 4 {
		t.Errorf("%d hosts were worked on", did.Load())
	}
	if err := f.Each(t.Context(), []string{"b1"}, func(context.Context, string, *Conn) error { return nil }); err != nil {
		t.Errorf("nobody failed: %v", err)
	}
}

func TestEachIsBounded(t *testing.T) {
	f := NewFleet(t.TempDir())
	defer f.Close()
	var names []string
	for i := range 3 * eachAtOnce {
		names = append(names, fmt.Sprintf("m%d", i))
		f.Add(rundir.Host{Name: names[i]}) // without an address: this machine
	}
	var now, most, did atomic.Int64
	errStop := errors.New("stopped by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := f.Each(ctx, names, func(context.Context, string, *Conn) error {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer now.Add(-1)
		if did.Add(1) == eachAtOnce {
			cancel(errStop)
		}
		<-ctx.Done()
		return nil
	})
	var hosts *HostsError
	if most.Load() > eachAtOnce || did.Load() < eachAtOnce || !errors.As(err, &hosts) || !errors.Is(err, errStop) {
		t.Errorf("%d at once, %d in all, %v", most.Load(), did.Load(), err)
	}
	if len(hosts.Failed)+int(did.Load()) != len(names) || !strings.Contains(err.Error(), ": not begun: stopped by the test") {
		t.Errorf("%d failed, %d were done", len(hosts.Failed), did.Load())
	}
}
