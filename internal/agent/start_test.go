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
