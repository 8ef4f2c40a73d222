package bench

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	"krig/internal/agent"
)

// clocks are how far the hosts' clocks are ahead of this machine's, measured
// at several moments and interpolated between them. A host that shares this machine's
// kernel shares its clock.
type clocks struct {
	own map[string]bool // hosts with this machine's clock

	mu      sync.Mutex
	samples map[string][]offset // by host, in time
}

// An offset is one measurement of a host's clock.
type offset struct {
	at    time.Time     // on this machine's clock
	ahead time.Duration // the host's clock minus this machine's
	bound time.Duration // the error is at most this
}

func (s *Session) newClocks(ctx context.Context) (*clocks, error) {
	c := &clocks{own: map[string]bool{machine: true}, samples: map[string][]offset{}}
	for _, h := range s.rig.Hosts {
		if h.SharesKernel() {
			c.own[h.Name] = true
		}
	}
	return c, c.measure(ctx, s)
}

// measure takes one more sample of every host that has a clock of its own.
func (c *clocks) measure(ctx context.Context, s *Session) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for name, a := range s.agents {
		if c.own[name] {
			continue
		}
		wg.Go(func() {
			at := time.Now()
			ahead, bound, err := agent.Clock(ctx, a)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = fmt.Errorf("%s: measuring its clock: %w", name, err)
				return
			}
			c.add(name, offset{at: at, ahead: ahead, bound: bound})
		})
	}
	wg.Wait()
	return failed
}

func (c *clocks) add(host string, o offset) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples[host] = append(c.samples[host], o)
}

// ahead is by how much a host's clock was ahead of this machine's at a moment,
// and the bound of that.
func (c *clocks) ahead(host string, at time.Time) (ahead, bound time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.samples[host]
	if c.own[host] || len(all) == 0 {
		return 0, 0
	}
	i := sort.Search(len(all), func(i int) bool { return all[i].at.After(at) })
	switch i {
	case 0:
		return all[0].ahead, all[0].bound
	case len(all):
		return all[i-1].ahead, all[i-1].bound
	}
	a, b := all[i-1], all[i]
	share := float64(at.Sub(a.at)) / float64(b.at.Sub(a.at))
	return a.ahead + time.Duration(share*float64(b.ahead-a.ahead)), max(a.bound, b.bound)
}

// local turns a moment of a host's clock, in ns since the epoch, into this machine's.
func (c *clocks) local(host string, ns int64) time.Time {
	at := time.Unix(0, ns)
	ahead, _ := c.ahead(host, at)
	return at.Add(-ahead)
}
