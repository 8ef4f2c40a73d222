package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestClock(t *testing.T) {
	const ahead = 90 * time.Minute
	c, _ := connect(t, map[string]Verb{
		VerbClock: func(ctx context.Context, s *Session) error {
			for {
				if _, err := s.Receive(ctx); err != nil {
					return err
				}
				if err := s.Emit("reading", ClockReading{Nanos: time.Now().Add(ahead).UnixNano()}); err != nil {
					return err
				}
			}
		},
	})
	offset, bound, err := Clock(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if off := (offset - ahead).Abs(); bound <= 0 || off > bound {
		t.Errorf("offset %v is off by %v, more than its bound %v", offset, off, bound)
	}
}

// An answer that took long on one way only is still within its bound.
func TestClockBoundHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		c, _ := connect(t, map[string]Verb{
			VerbClock: func(ctx context.Context, s *Session) error {
				for {
					if _, err := s.Receive(ctx); err != nil {
						return err
					}
					at := time.Now()
					n++
					time.Sleep(time.Duration(n%7+3) * time.Millisecond) // the way back
					if err := s.Emit("reading", ClockReading{Nanos: at.UnixNano()}); err != nil {
						return err
					}
				}
			},
		})
		offset, bound, err := Clock(t.Context(), c)
		if err != nil || bound != 1500*time.Microsecond || offset != -bound {
			t.Errorf("offset %v, bound %v, %v; want -1.5ms, 1.5ms of the tightest round trip", offset, bound, err)
		}
	})
}
