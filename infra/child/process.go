package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"krig/internal/rundir"
)

// A Process is one that runs on this machine.
type Process struct {
	Owner rundir.Owner
	Argv  []string
}

// Processes lists those whose arguments fit.
func Processes(fits func(argv []string) bool) []Process {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var out []Process
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil || len(data) == 0 { // ended, or a kernel thread
			continue
		}
		argv := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		if !fits(argv) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		if err != nil {
			continue
		}
		if o, err := rundir.OwnerOf(pid); err == nil && o.Alive() {
			out = append(out, Process{o, argv})
		}
	}
	return out
}

// patience is how long a program may take to come to its end by itself before
// it is asked to: half a network is worse than a whole one.
func patience(program string) time.Duration {
	if program == "podman" { // the lab's commands take under a second
		return 15 * time.Second
	}
	return 0
}

// EndEntry ends a process that the ledger names by its identity and what it is.
func EndEntry(ctx context.Context, ref string) error {
	who, what, _ := strings.Cut(ref, " ")
	o, err := rundir.ParseOwner(who)
	if err != nil {
		return err
	}
	return End(ctx, o, what)
}

// EntryAlive tells whether a process that the ledger names still runs.
func EntryAlive(ref string) bool {
	who, _, _ := strings.Cut(ref, " ")
	o, err := rundir.ParseOwner(who)
	return err == nil && o.Alive()
}

// orderly is how long a program may take to come to an end at one interrupt,
// which it then finishes what it does at: two would leave its records behind.
func orderly(program string) time.Duration {
	switch program {
	case "tofu", "terraform", "pulumi":
		return time.Minute
	}
	return 0
}

// End ends a process that does what: after the time that its program may take
// it is asked to, and at last it is killed.
func End(ctx context.Context, o rundir.Owner, what string) error {
	program, _, _ := strings.Cut(what, " ")
	if gone(ctx, o, patience(program)) {
		return nil
	}
	if limit := orderly(program); limit > 0 {
		if err := syscall.Kill(o.PID, syscall.SIGINT); err == nil && gone(ctx, o, limit) {
			return nil
		}
	}
	if err := Signal(ctx, o, syscall.SIGTERM); err == nil {
		return nil
	}
	return Signal(ctx, o, syscall.SIGKILL)
}

// Signal signals a process and waits until it is gone, 10 s at most.
func Signal(ctx context.Context, o rundir.Owner, sig syscall.Signal) error {
	if !o.Alive() {
		return nil
	}
	if err := syscall.Kill(o.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending process %d: %w", o.PID, err)
	}
	if !gone(ctx, o, 10*time.Second) {
		return fmt.Errorf("process %d does not end", o.PID)
	}
	return nil
}

// gone waits for the end of a process that need not be our own child.
func gone(ctx context.Context, o rundir.Owner, limit time.Duration) bool {
	fd, err := unix.PidfdOpen(o.PID, 0)
	if err != nil {
		return !o.Alive()
	}
	defer unix.Close(fd)
	deadline := time.Now().Add(limit)
	for o.Alive() { // also tells that the descriptor is not another process's
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
		const step = 100 // milliseconds after which ctx is looked at again
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, step); err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
	return true
}
