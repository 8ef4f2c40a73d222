package bench

import (
	"context"
	"sync"
	"time"
)

const (
	appendLook  = 250 * time.Millisecond
	appendQuiet = 12 // looks without growth after which nothing more is expected
)

// appendCounter asks the brokers again and again how many records they have
// appended: with acks=0 nobody else knows. A nil one counts nothing.
type appendCounter struct {
	ends   func(context.Context) (int64, error)
	cancel context.CancelFunc
	done   chan struct{} // closed when nobody looks any more

	mu      sync.Mutex
	samples []appends // the first is of the start
	err     error     // of the last look
	from    time.Time // of the window
}

// appends is the records that the topics held at a moment.
type appends struct {
	at    time.Time
	total int64
}

// base notes what is there before the load.
func (a *appendCounter) base(ctx context.Context) {
	if a != nil {
		a.look(ctx)
	}
}

// begin looks from the load's start on, until ctx or the counter ends.
func (a *appendCounter) begin(ctx context.Context, start time.Time, warmup time.Duration) {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.from = start.Add(warmup)
	for i := range a.samples {
		a.samples[i].at = start
	}
	a.mu.Unlock()
	a.watch(ctx, start)
}

// countAppends looks from now on.
func countAppends(ctx context.Context, ends func(context.Context) (int64, error)) *appendCounter {
	a := &appendCounter{ends: ends}
	a.watch(ctx, time.Now())
	return a
}

func (a *appendCounter) watch(ctx context.Context, from time.Time) {
	ctx, a.cancel = context.WithCancel(ctx)
	a.done = make(chan struct{})
	go func() {
		defer close(a.done)
		wait := time.Until(from)
		for {
			select {
			case <-time.After(wait):
				a.look(ctx)
				wait = appendLook
			case <-ctx.Done():
				return
			}
		}
	}()
}

// look takes a sample; it is taken to be of the middle of the asking.
func (a *appendCounter) look(ctx context.Context) {
	asked := time.Now()
	total, err := a.ends(ctx)
	at := asked.Add(time.Since(asked) / 2)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	if err == nil {
		a.samples = append(a.samples, appends{at: at, total: total})
	}
}

// finish ends the counting once the brokers have appended all that was sent, or nothing more for
// a while.
func (a *appendCounter) finish(ctx context.Context, sent int64) {
	if a == nil || a.cancel == nil {
		return
	}
	for quiet := 0; quiet < appendQuiet && ctx.Err() == nil && a.grown() < sent; quiet++ {
		before := a.latest()
		select {
		case <-time.After(appendLook):
		case <-ctx.Done():
		}
		if a.latest() > before {
			quiet = 0
		}
	}
	a.stop()
}

func (a *appendCounter) stop() {
	if a != nil && a.cancel != nil {
		a.cancel()
		<-a.done
	}
}

// grown is how many records came since the start.
func (a *appendCounter) grown() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.samples) == 0 {
		return 0
	}
	return a.samples[len(a.samples)-1].total - a.samples[0].total
}

// latest is the newest total.
func (a *appendCounter) latest() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.samples) == 0 {
		return 0
	}
	return a.samples[len(a.samples)-1].total
}

// at is the total at a moment, between the samples around it.
func (a *appendCounter) at(when time.Time) (float64, bool) {
	var before *appends
	for i := range a.samples {
		s := &a.samples[i]
		if s.at.Before(when) {
			before = s
			continue
		}
		if before == nil {
			return float64(s.total), true
		}
		part := float64(when.Sub(before.at)) / float64(s.at.Sub(before.at))
		return float64(before.total) + part*float64(s.total-before.total), true
	}
	if before == nil {
		return 0, false
	}
	return float64(before.total), true
}

// settled is when the total last grew: the end of a load that ends by records.
func (a *appendCounter) settled() time.Time {
	for i := len(a.samples) - 1; i > 0; i-- {
		if a.samples[i].total > a.samples[i-1].total {
			return a.samples[i].at
		}
	}
	return a.from
}
