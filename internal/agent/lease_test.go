package agent

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLeaseEndsEveryVerb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 3)
		c, served := connect(t, map[string]Verb{
			"wait": func(ctx context.Context, s *Session) error {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return ctx.Err()
			},
			"flood": func(ctx context.Context, s *Session) error { // nobody reads it
				for {
					if err := s.Emit("x", strings.Repeat("x", 10_000)); err != nil {
						causes <- err
						return err
					}
				}
			},
		})
		calls := []*Call{mustCall(t, c, "wait", nil), mustCall(t, c, "wait", nil), mustCall(t, c, "flood", nil)}
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		for range calls {
			if err := <-causes; !errors.Is(err, ErrLease) {
				t.Errorf("a verb ended with %v", err)
			}
		}
		if _, err := c.Call(t.Context(), "wait", nil); err == nil {
			t.Error("a closed client started a call")
		}
	})
}

// A krig whose machine has lost its power ends no stream.
func TestSilenceEndsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inR, inW := io.Pipe()
		var cause error
		served := make(chan error, 1)
		go func() {
			served <- Serve(t.Context(), inR, io.Discard, map[string]Verb{
				"wait": func(ctx context.Context, _ *Session) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					return nil
				},
			})
		}()
		call, err := encode(frame{Call: 1, Op: opCall, Kind: "wait"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(silenceLimit / 2)
		inW.Write(call)
		begun := time.Now()
		if err := <-served; err == nil || err.Error() != "nothing was heard of krig for 1m0s" || !errors.Is(cause, ErrLease) {
			t.Errorf("it ended with %v, the verb with %v", err, cause)
		}
		if took := time.Since(begun); took != silenceLimit {
			t.Errorf("it took %v", took)
		}
		inW.Close()
	})
}

func TestQuietCallsKeepTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connect(t, map[string]Verb{
			"wait": func(ctx context.Context, _ *Session) error { <-ctx.Done(); return ctx.Err() },
		})
		call := mustCall(t, c, "wait", nil)
		time.Sleep(10 * silenceLimit)
		call.Cancel()
		if _, err := drain(t.Context(), call); err != io.EOF {
			t.Errorf("after a long time: %v", err)
		}
	})
}
