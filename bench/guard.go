package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"krig/internal/experiment"
	"krig/internal/kafka"
	"krig/internal/rundir"
)

const (
	guardLook  = 2 * time.Second
	guardAsk   = 10 * time.Second // a broker under load may answer late
	limitLeast = 3 * time.Minute
	slowest    = 5e6 // B/s, for the limit of a load of which nothing else is known
)

// stopCause is why a load was ended from outside.
type stopCause string

func (c stopCause) Error() string { return string(c) }

// ended is the error of a context that ended, but nil where krig itself ended the
// load for a cause that makes the repeat invalid.
func ended(ctx context.Context) error {
	var cause stopCause
	if ctx.Err() == nil || errors.As(context.Cause(ctx), &cause) {
		return nil
	}
	return ctx.Err()
}

// guard ends a load when it cannot become valid any more: a broker died, an agent is
// gone, a disk is full, its limit has passed.
type guard struct {
	s      *Session
	ask    Ask
	t      *topics
	admin  *kadm.Client
	full   <-chan string // says which disk is full
	cancel context.CancelCauseFunc
	quit   chan struct{}
	done   chan struct{}
}

// guard returns the context for a load and who ends it.
func (s *Session) guard(ctx context.Context, a Ask, t *topics, full <-chan string) (context.Context, *guard) {
	loading, cancel := context.WithCancelCause(ctx)
	// Connections of its own, and hardly a retry: a refusal is what it looks for.
	admin, err := kafka.Admin(s.fleet, a.Cluster, kgo.RequestRetries(1), kgo.RetryTimeout(guardAsk))
	if err != nil {
		cancel(stopCause(err.Error()))
	}
	w := &guard{s: s, ask: a, t: t, admin: admin, full: full, cancel: cancel, quit: make(chan struct{}), done: make(chan struct{})}
	go w.run(loading)
	return loading, w
}

// stop ends the watching of a load's context and says why the load was ended; "" when it was not.
func (w *guard) stop(loading context.Context) string {
	close(w.quit)
	<-w.done
	defer w.cancel(nil)
	if w.admin != nil {
		defer w.admin.Close()
	}
	var cause stopCause
	switch {
	case loading.Err() == nil:
		// What died in the last moments: nobody looked since.
		return first(w.look(loading), w.s.lostAgents())
	case errors.As(context.Cause(loading), &cause):
		return string(cause)
	default:
		return ""
	}
}

func (w *guard) run(ctx context.Context) {
	defer close(w.done)
	limit := repeatLimit(w.s, w.ask.Cell)
	over := time.After(limit)
	failed := 0
	for {
		select {
		case <-w.quit:
			return
		case <-ctx.Done():
			return
		case <-over:
			w.cancel(stopCause(fmt.Sprintf("the load took longer than its limit of %v", limit)))
			return
		case why := <-w.full:
			w.cancel(stopCause(why))
			return
		case <-time.After(guardLook):
		}
		if lost := w.s.lostAgents(); lost != "" {
			w.cancel(stopCause(lost))
			return
		}
		why := w.look(ctx)
		if why == "" {
			failed = 0
			continue
		}
		// One refusal may be a connection that idled out; two are none.
		if failed++; failed == 2 {
			w.cancel(stopCause(why))
			return
		}
	}
}

// look asks every broker for its log directories; one that does not answer is dead.
func (w *guard) look(ctx context.Context) string {
	brokers := w.ask.Cluster.Brokers
	answers := make([]string, len(brokers))
	var wg sync.WaitGroup
	for i, b := range brokers {
		wg.Go(func() { answers[i] = w.ping(ctx, b) })
	}
	wg.Wait()
	for _, a := range answers {
		if a != "" {
			return a
		}
	}
	return ""
}

func (w *guard) ping(ctx context.Context, b rundir.Node) string {
	ask, cancel := context.WithTimeout(ctx, guardAsk)
	defer cancel()
	var one kadm.TopicsSet
	if len(w.t.names) > 0 { // else it tells of all partitions
		one.Add(w.t.names[0], 0)
	}
	dirs, err := w.admin.DescribeBrokerLogDirs(ask, b.ID, one)
	if ctx.Err() != nil {
		return ""
	}
	if err != nil {
		return fmt.Sprintf("%s: broker %d died or does not answer: %v", b.Host, b.ID, err)
	}
	for _, d := range dirs {
		if d.Err != nil {
			return fmt.Sprintf("%s: log directory %s is offline: %v", b.Host, d.Dir, d.Err)
		}
	}
	return ""
}

// lostAgents names a host whose agent is gone.
func (s *Session) lostAgents() string {
	for _, h := range s.rig.Hosts {
		if a := s.agents[h.Name]; a == nil || gone(a) {
			return h.Name + ": its agent is gone: the host or the connection to it is lost"
		}
	}
	return ""
}

// repeatLimit is how long one load may take: the experiment's, or ten times what it should.
func repeatLimit(s *Session, c *experiment.Cell) time.Duration {
	if c.Bench.Limit > 0 {
		return time.Duration(c.Bench.Limit)
	}
	return max(10*c.LoadTime(s.clusterRate()), limitLeast)
}

// clusterRate is what the brokers' disks write together, or a low guess.
func (s *Session) clusterRate() float64 {
	total := 0.0
	for _, h := range s.hosts(rundir.Broker) {
		if l := s.rig.Limits; l != nil && l.Hosts[h.Name].DiskWrite != nil {
			total += *l.Hosts[h.Name].DiskWrite
		}
	}
	return max(total, slowest)
}
