// Command krig stands Kafka test rigs up, measures them, and takes them down.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"krig/internal/cli"
)

// version is set by the linker; a plain go build leaves it empty.
var version string

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup krig goes on
		signal.Notify(signals, syscall.SIGHUP)
	}
	// A reader that goes away (krig run ... | head) must not kill krig while
	// hosts stand: writes then fail with EPIPE instead.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Signals: signals, Version: version,
	}))
}
