package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// VerbClock is the verb behind [Clock].
const VerbClock = "clock"

// ClockReading is the agent's answer to one question.
type ClockReading struct {
	Nanos int64 `json:"nanos"` // since the epoch, on the agent's clock
}

// clockRounds is how many round trips one reading of a clock takes.
const clockRounds = 15

// Clock measures how far the agent's clock is ahead of this one: offset is
// within bound of the truth. It is the tightest of 15 round trips.
func Clock(ctx context.Context, c *Client) (offset, bound time.Duration, err error) {
	call, err := c.Call(ctx, VerbClock, nil)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = call.Cancel() }() // it fails only without an agent
	for i := range clockRounds {
		o, b, err := clockRound(ctx, call)
		if err != nil {
			return 0, 0, fmt.Errorf("reading its clock: %w", err)
		}
		if i == 0 || b < bound {
			offset, bound = o, b
		}
	}
	return offset, bound, nil
}

func clockRound(ctx context.Context, call *Call) (offset, bound time.Duration, err error) {
	before := time.Now()
	if err := call.Send("ask", nil); err != nil {
		return 0, 0, err
	}
	m, err := call.Next(ctx)
	if err != nil {
		return 0, 0, err
	}
	trip := time.Since(before)
	var r ClockReading
	if err := json.Unmarshal(m.Body, &r); err != nil {
		return 0, 0, err
	}
	middle := before.Add(trip / 2)
	return time.Unix(0, r.Nanos).Sub(middle.Round(0)), (trip + 1) / 2, nil
}
