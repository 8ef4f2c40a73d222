package main

import (
	"context"
	"time"

	"krig/internal/agent"
)

// clockVerb answers each question with the time, until it is cancelled.
func clockVerb(ctx context.Context, s *agent.Session) error {
	for {
		if _, err := s.Receive(ctx); err != nil {
			return err
		}
		if err := s.Emit("reading", agent.ClockReading{Nanos: time.Now().UnixNano()}); err != nil {
			return err
		}
	}
}
