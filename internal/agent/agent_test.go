package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// connect runs Serve in this process and returns a client of it.
func connect(t *testing.T, verbs map[string]Verb) (*Client, <-chan error) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := Serve(context.Background(), inR, outW, verbs)
		outW.Close()
		served <- err
	}()
	c := NewClient(outR, inW)
	t.Cleanup(func() { c.Close() })
	return c, served
}

func mustCall(t *testing.T, c *Client, verb string, args any) *Call {
	t.Helper()
	call, err := c.Call(t.Context(), verb, args)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// drain reads a call to its end.
func drain(ctx context.Context, call *Call) (kinds []string, err error) {
	for {
		m, err := call.Next(ctx)
		if err != nil {
			return kinds, err
		}
		kinds = append(kinds, m.Kind)
	}
}

func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connect(t, map[string]Verb{
			"greet": func(_ context.Context, s *Session) error {
				var name string
				if err := json.Unmarshal(s.Args, &name); err != nil {
					return err
				}
				return s.Emit("greeting", "hello "+name)
			},
		})
		call := mustCall(t, c, "greet", "b1")
		m, err := call.Next(t.Context())
		if err != nil || m.Kind != "greeting" || string(m.Body) != `"hello b1"` {
			t.Errorf("got %q %s, %v", m.Kind, m.Body, err)
		}
		for range 2 {
			if _, err := call.Next(t.Context()); err != io.EOF {
				t.Errorf("after its end: %v, want io.EOF", err)
			}
		}
	})
}

func TestVerbErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connect(t, map[string]Verb{
			"bad": func(_ context.Context, s *Session) error {
				s.Emit("first", nil)
				return errors.New("the disk is full")
			},
			"huge": func(_ context.Context, s *Session) error {
				return s.Emit("huge", strings.Repeat("x", frameLimit))
			},
			"self": func(context.Context, *Session) error { return context.Canceled },
		})
		for _, tc := range []struct{ verb, want string }{
			{"bad", "bad: the disk is full"},
			{"huge", "huge: a message of 67108866 bytes: at most 67108864 can be sent"},
			{"self", "self: context canceled"}, // nobody cancelled it
			{"nope", "nope: no such verb; there are bad, huge, self"},
		} {
			_, err := drain(t.Context(), mustCall(t, c, tc.verb, nil))
			var verbErr *Error
			if !errors.As(err, &verbErr) || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		}
	})
}

func TestInputReachesTheVerb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connect(t, map[string]Verb{
			"sum": func(ctx context.Context, s *Session) error {
				total := 0
				for {
					m, err := s.Receive(ctx)
					if err != nil {
						return err
					}
					if m.Kind == "done" {
						return s.Emit("total", total)
					}
					var n int
					if err := json.Unmarshal(m.Body, &n); err != nil {
						return err
					}
					total += n
				}
			},
		})
		call := mustCall(t, c, "sum", nil)
		const count = 100_000 // several windows
		for range count {
			if err := call.Send("n", 2); err != nil {
				t.Fatal(err)
			}
		}
		if err := call.Send("done", nil); err != nil {
			t.Fatal(err)
		}
		m, err := call.Next(t.Context())
		if err != nil || string(m.Body) != fmt.Sprint(2*count) {
			t.Errorf("got %s, %v", m.Body, err)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connect(t, map[string]Verb{
			"wait": func(ctx context.Context, s *Session) error {
				<-ctx.Done()
				if err := s.Emit("last", nil); err != nil { // still possible
					return err
				}
				return context.Cause(ctx)
			},
		})
		call := mustCall(t, c, "wait", nil)
		if err := call.Cancel(); err != nil {
			t.Fatal(err)
		}
		if kinds, err := drain(t.Context(), call); err != io.EOF || len(kinds) != 1 {
			t.Errorf("after Cancel: %v, %v", kinds, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		call, err := c.Call(ctx, "wait", nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if kinds, err := drain(t.Context(), call); err != io.EOF || len(kinds) != 1 {
			t.Errorf("after the context's end: %v, %v", kinds, err)
		}
		if err := call.Cancel(); err != nil {
			t.Errorf("cancelling what has ended: %v", err)
		}
		if err := call.Send("more", nil); err == nil {
			t.Error("what has ended took input")
		}
	})
}

func TestSlowReaderHoldsUpItselfAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int64
		body := strings.Repeat("x", 1000)
		c, _ := connect(t, map[string]Verb{
			"flood": func(ctx context.Context, s *Session) error {
				for range 10_000 {
					if err := s.Emit("x", body); err != nil {
						return err
					}
					sent.Add(1)
				}
				return nil
			},
			"echo": func(ctx context.Context, s *Session) error { return s.Emit("echo", nil) },
		})
		slow := mustCall(t, c, "flood", nil)
		synctest.Wait() // the flood stands still
		stuck := sent.Load()
		if bytes := stuck * int64(len(body)); bytes < window/2 || bytes > window+int64(len(body)) {
			t.Errorf("%d bytes were sent unread, want about one window of %d", bytes, window)
		}
		for range 100 {
			if kinds, err := drain(t.Context(), mustCall(t, c, "echo", nil)); err != io.EOF || len(kinds) != 1 {
				t.Fatalf("another call: %v, %v", kinds, err)
			}
		}
		if sent.Load() != stuck {
			t.Errorf("the flood went on")
		}
		if kinds, err := drain(t.Context(), slow); err != io.EOF || len(kinds) != 10_000 {
			t.Errorf("the flood ended with %d messages, %v", len(kinds), err)
		}
	})
}

func TestManyCallsAtOnce(t *testing.T) {
	c, _ := connect(t, map[string]Verb{
		"count": func(ctx context.Context, s *Session) error {
			for i := range 500 {
				if err := s.Emit("n", i); err != nil {
					return err
				}
			}
			return nil
		},
	})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			call, err := c.Call(t.Context(), "count", nil)
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 500 {
				m, err := call.Next(t.Context())
				if err != nil || string(m.Body) != fmt.Sprint(i) {
					t.Errorf("message %d: %s, %v", i, m.Body, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

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

func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		c, served := connect(t, map[string]Verb{
			"stuck": func(context.Context, *Session) error { <-stuck; return nil },
		})
		mustCall(t, c, "stuck", nil)
		synctest.Wait()
		start := time.Now()
		err := c.Close()
		if took := time.Since(start); took != closeLimit || err == nil || !strings.Contains(err.Error(), "has not ended within 20s") {
			t.Errorf("after %v: %v", took, err)
		}
		close(stuck)
		<-served
	})
}

func TestGreeting(t *testing.T) {
	for _, tc := range []struct{ name, said, want string }{
		{"nothing", "", "no krig-agent that fits this krig: it ended without a word"},
		{"motd", "Welcome to Debian!\nkrig-agent 1 unknown\n", `no krig-agent that fits this krig: it began with "Welcome to Debian!\n"`},
		{"no line", strings.Repeat("x", 1<<20), `no krig-agent that fits this krig: it began with "` + strings.Repeat("x", 200)},
		{"cut", "krig-agent 1", `no krig-agent that fits this krig: it began with "krig-agent 1"`},
		{"old", "krig-agent 0 abc\n", "no krig-agent that fits this krig: it speaks protocol 0, this krig 1; build both from one source (make build)"},
		{"no number", "krig-agent one abc\n", "no krig-agent that fits this krig: it speaks protocol one, this krig 1; build both from one source (make build)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, in := io.Pipe()
				c := NewClient(strings.NewReader(tc.said), in)
				defer c.Close()
				_, err := c.Call(t.Context(), "clock", nil)
				if !errors.Is(err, ErrGreeting) || !strings.HasPrefix(err.Error(), tc.want) {
					t.Errorf("got  %v\nwant %s", err, tc.want)
				}
			})
		})
	}
}

func TestSilentAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outR, outW := io.Pipe()
		_, in := io.Pipe()
		c := NewClient(outR, in)
		start := time.Now()
		err := c.Ready(t.Context())
		if took := time.Since(start); took != greetingLimit || !errors.Is(err, ErrGreeting) {
			t.Errorf("after %v: %v", took, err)
		}
		outW.Close()
		c.Close()
	})
}

func TestConnectionBreaks(t *testing.T) {
	errBroken := errors.New("the cable was pulled")
	synctest.Test(t, func(t *testing.T) {
		outR, outW := io.Pipe()
		inR, in := io.Pipe()
		go io.Copy(io.Discard, inR)
		c := NewClient(outR, in)
		defer c.Close()
		io.WriteString(outW, greeting())
		call := mustCall(t, c, "x", nil)
		data, _ := encode(frame{Call: 1, Op: opData, Kind: "whole"})
		outW.Write(data)
		outW.Write(data[:7]) // half a frame
		outW.CloseWithError(errBroken)
		<-c.Ended()
		if m, err := call.Next(t.Context()); err != nil || m.Kind != "whole" {
			t.Errorf("what had arrived: %v, %v", m, err)
		}
		if _, err := call.Next(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
	})
}

func TestStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, argv []string, in io.Reader, out, stderr io.Writer) error {
			if strings.Join(argv, " ") != "/opt/krig-agent serve" {
				t.Errorf("it was started as %q", argv)
			}
			return Serve(ctx, in, out, map[string]Verb{
				"hi": func(_ context.Context, s *Session) error { return s.Emit("hi", nil) },
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		c, err := Start(ctx, run, "/opt/krig-agent")
		if err != nil {
			t.Fatal(err)
		}
		cancel() // bounds the start alone
		if kinds, err := drain(t.Context(), mustCall(t, c, "hi", nil)); err != io.EOF || len(kinds) != 1 {
			t.Errorf("got %v, %v", kinds, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestStartFails(t *testing.T) {
	errExit := errors.New("b1: /opt/krig-agent serve: exit 127")
	synctest.Test(t, func(t *testing.T) {
		_, err := Start(t.Context(), func(_ context.Context, _ []string, _ io.Reader, _, stderr io.Writer) error {
			io.WriteString(stderr, "sh: 1: exec: /opt/krig-agent: not found\n")
			return errExit
		}, "/opt/krig-agent")
		want := "starting krig-agent: no krig-agent that fits this krig: krig-agent has ended: b1: /opt/krig-agent serve: exit 127: sh: 1: exec: /opt/krig-agent: not found"
		if !errors.Is(err, errExit) || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

func TestStartGivesUp(t *testing.T) {
	errStop := errors.New("stopped by the test")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errStop) })
		_, err := Start(ctx, func(ctx context.Context, _ []string, _ io.Reader, out, _ io.Writer) error {
			<-ctx.Done() // a runner ends the command then
			return context.Cause(ctx)
		}, "/opt/krig-agent")
		if !errors.Is(err, errStop) {
			t.Errorf("got %v", err)
		}
	})
}

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

func FuzzReadFrame(f *testing.F) {
	whole, err := encode(frame{Call: 7, Op: opData, Kind: "k", Body: json.RawMessage(`{"a":[1,2]}`)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:5])
	f.Add([]byte("Welcome to Debian"))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{4, 0, 0, 0, '{'})
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bufio.NewReader(bytes.NewReader(data))
		for {
			got, err := readFrame(r)
			if err != nil {
				return
			}
			// What was read can be written and reads the same.
			again, err := encode(got)
			if err != nil {
				t.Fatalf("%+v: %v", got, err)
			}
			back, err := readFrame(bufio.NewReader(bytes.NewReader(again)))
			if err != nil || back.Call != got.Call || back.Op != got.Op || back.Kind != got.Kind || back.Error != got.Error {
				t.Fatalf("%+v came back as %+v, %v", got, back, err)
			}
		}
	})
}
