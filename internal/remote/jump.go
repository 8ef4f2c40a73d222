package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"time"

	"krig/internal/rundir"
)

// ways logs in to hosts. Those behind the same jump host share the one
// connection to it, which lives as long as any of them.
type ways struct {
	keyDir    string
	keepalive time.Duration

	mu   sync.Mutex
	hops map[string]*hop
	took []string // public keys of the agent that hosts have taken, the latest first
}

func newWays(keyDir string) *ways {
	return &ways{keyDir: keyDir, keepalive: keepaliveEvery, hops: map[string]*hop{}}
}

// hop is one jump host and the connection to it; ways.mu guards it.
type hop struct {
	users  int
	link   *sshLink
	trying *trying
}

// trying is a login to a jump host under way. All who wait for it share what comes of it.
type trying struct {
	done   chan struct{}
	err    error // guarded by done
	gaveUp bool  // guarded by done: its caller's ctx ended, which says nothing of the host
}

// passage is one login's way over its jump host; none when there is none to
// pass. It is used by one goroutine at a time.
type passage struct {
	ways     *ways
	through  *rundir.SSH // nil is directly
	patience patience

	key  string
	hop  *hop
	link *sshLink
}

// name is the jump host's in messages.
func (p *passage) name() string { return p.through.User + "@" + addrOf(p.through) }

// enter makes sure that the jump host is connected to.
func (p *passage) enter(ctx context.Context) error {
	if p.through == nil {
		return nil
	}
	if p.hop == nil {
		if err := p.take(); err != nil {
			return err
		}
	}
	var err error
	if p.link, err = p.ways.connect(ctx, p.hop, p.through, p.patience); err != nil {
		return p.errorf(err)
	}
	return nil
}

func (p *passage) errorf(err error) error { return fmt.Errorf("jump host %s: %w", p.name(), err) }

// take counts this login among the hop's users.
func (p *passage) take() error {
	key, err := json.Marshal(p.through)
	if err != nil {
		return err
	}
	w := p.ways
	w.mu.Lock()
	defer w.mu.Unlock()
	p.key = string(key)
	if p.hop = w.hops[p.key]; p.hop == nil {
		p.hop = &hop{}
		w.hops[p.key] = p.hop
	}
	p.hop.users++
	return nil
}

// leave gives up the jump host; the last one to do so closes the connection to it.
func (p *passage) leave() {
	if p.hop == nil {
		return
	}
	w := p.ways
	w.mu.Lock()
	p.hop.users--
	var link *sshLink
	if p.hop.users == 0 {
		link = p.hop.link
		delete(w.hops, p.key)
	}
	p.hop = nil
	w.mu.Unlock()
	if link != nil {
		_ = link.close() // nobody uses it, and it may be broken
	}
}

// dial opens a connection to the host.
func (p *passage) dial(ctx context.Context, addr string) (net.Conn, error) {
	if p.through == nil {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
	conn, err := p.link.dial(ctx, "tcp", addr)
	if err != nil {
		return nil, p.errorf(err)
	}
	return conn, nil
}

// connect returns a hop's connection, logging in when there is none or the
// last one broke.
func (w *ways) connect(ctx context.Context, h *hop, s *rundir.SSH, p patience) (*sshLink, error) {
	for {
		w.mu.Lock()
		if h.link != nil && !h.link.isDead() {
			defer w.mu.Unlock()
			return h.link, nil
		}
		now := h.trying
		if now == nil {
			now = &trying{done: make(chan struct{})}
			h.trying = now
			w.mu.Unlock()
			return w.reconnect(ctx, h, s, p, now)
		}
		w.mu.Unlock()
		select {
		case <-now.done:
			if now.err != nil && !now.gaveUp {
				return nil, now.err
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// reconnect logs in to a jump host on behalf of all who wait for it.
func (w *ways) reconnect(ctx context.Context, h *hop, s *rundir.SSH, p patience, now *trying) (*sshLink, error) {
	w.mu.Lock()
	old := h.link
	h.link = nil
	w.mu.Unlock()
	if old != nil {
		_ = old.close() // of a broken connection nothing is left to close
	}
	link, err := w.login(ctx, s, p)
	w.mu.Lock()
	h.link, h.trying = link, nil
	w.mu.Unlock()
	now.err, now.gaveUp = err, ctx.Err() != nil
	close(now.done)
	return link, err
}
