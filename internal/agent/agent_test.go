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
