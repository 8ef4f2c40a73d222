package bench

import (
	"context"
	"sync"
	"time"
)

const appendLook = 250 * time.Millisecond

// appendCounter asks the brokers again and again how many records they have
// appended: with acks=0 nobody else knows. A nil one counts nothing.
type appendCounter struct {
	ends   func(context.Context) (int64, error)
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	samples []appends
	err     error // of the last look
	before  int64
	start   time.Time
	from    time.Time // of the window
	to      time.Time // of the window; zero when records end it
}

// appends is the records that the topics held at a moment.
type appends struct {
	at    time.Time
	total int64
}

func countAppends(ctx context.Context, ends func(context.Context) (int64, error)) *appendCounter {
	ctx, cancel := context.WithCancel(ctx)
	a := &appendCounter{ends: ends, cancel: cancel, done: make(chan struct{})}
	go a.run(ctx)
	return a
}

func (a *appendCounter) run(ctx context.Context) {
	defer close(a.done)
	for ctx.Err() == nil {
		a.look(ctx)
		select {
		case <-time.After(appendLook):
		case <-ctx.Done():
		}
	}
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

// stop ends the counting.
func (a *appendCounter) stop() {
	if a != nil {
		a.cancel()
		<-a.done
	}
}

// begin fixes the window.
func (a *appendCounter) begin(start time.Time, warmup, length time.Duration) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start, a.from = start, start.Add(warmup)
	if length > 0 {
		a.to = a.from.Add(length)
	}
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
