package lab

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

// A process is one that runs on this machine.
type process struct {
	owner rundir.Owner
	argv  []string
}

// processes lists those whose arguments fit.
func processes(fits func(argv []string) bool) []process {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	var out []process
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
			out = append(out, process{o, argv})
		}
	}
	return out
}

// makers lists the podman commands that make something of krig's right now:
// those of a dead krig go on.
func makers() []process {
	return processes(func(argv []string) bool {
		return filepath.Base(argv[0]) == "podman" && labelFromArgs(argv).Run != ""
	})
}

// end signals a process and waits until it is gone.
func end(ctx context.Context, p process, sig syscall.Signal) error {
	if !p.owner.Alive() {
		return nil
	}
	if err := syscall.Kill(p.owner.PID, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("ending process %d: %w", p.owner.PID, err)
	}
	if !gone(ctx, p.owner, 10*time.Second) {
		return fmt.Errorf("process %d does not end", p.owner.PID)
	}
	return nil
}

// finish lets a process come to its end by itself, asks it to after a while,
// and ends it at last. Half a network is worse than a whole one, and the
// commands of podman that the lab uses take under a second.
func finish(ctx context.Context, p process) error {
	if gone(ctx, p.owner, 15*time.Second) {
		return nil
	}
	if err := end(ctx, p, syscall.SIGTERM); err == nil {
		return nil
	}
	return end(ctx, p, syscall.SIGKILL)
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
