// Command krig-agent is krig's one small program on every host of a rig. It
// speaks the protocol of internal/agent on standard input and output; standard
// input is its lease, at whose end it ends everything it started.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"krig/internal/agent"
)

func main() {
	// A krig that is gone must not kill the agent before it has ended its
	// children: writes then fail with EPIPE instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// verbs are all that the agent can do.
func verbs() map[string]agent.Verb {
	return map[string]agent.Verb{
		agent.VerbExec:  execVerb,
		agent.VerbClock: clockVerb,
		"load":          load,
		"collect":       collect,
	}
}

func run(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) int {
	command := ""
	if len(args) == 1 {
		command = args[0]
	}
	var err error
	switch command {
	case "serve":
		err = serve(ctx, in, out)
	case guardCommand:
		err = guard(in)
	case "version":
		_, err = fmt.Fprintf(out, "krig-agent protocol %d build %s\n", agent.Protocol, agent.BuildName())
	default:
		fmt.Fprintln(stderr, "usage: krig-agent serve | version\nkrig starts it on hosts; it is not run by hand.")
		return 2
	}
	if err != nil {
		fmt.Fprintln(stderr, "krig-agent:", err)
		return 1
	}
	return 0
}

// serve runs verbs until the lease ends, with a guard beside it.
func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	stop, err := startGuard()
	if err != nil {
		return fmt.Errorf("starting the guard: %w", err)
	}
	err = agent.Serve(ctx, in, out, verbs())
	stop()
	return err
}
