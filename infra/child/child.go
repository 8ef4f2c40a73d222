// Package child runs the programs that make and remove hosts, each in a
// process group of its own and written down in the run's ledger while it runs,
// tells which are missing, and ends those that a dead krig left running.
package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"krig/internal/rundir"
)

// A Command is one run of a program on this machine. It is not stopped in
// mid-change when ctx ends, half a network is worse than a whole one, but at its
// limit alone. It runs in a process group of its own, so that neither ^C nor
// krig's death reaches it, and writes into files, whose end krig's is not.
type Command struct {
	Argv   []string
	Dir    string         // where it runs; "" is where this process does
	Env    []string       // added to this process's own, as KEY=VALUE
	Files  []*os.File     // what it inherits, from descriptor 3 on
	Limit  time.Duration  // after which it is asked to end; required
	Ledger *rundir.Ledger // records the process while it runs; nil records nothing

	Interrupt bool              // when ctx ends it gets one SIGINT, at which it is known to come to an orderly end
	Lines     func(line string) // gets each whole line of standard output soon after it was written
}

// Run returns standard output once the program has ended. The error holds the
// end of standard error.
func (c Command) Run(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.Limit)
	defer cancel()
	cmd := exec.CommandContext(limited, c.Argv[0], c.Argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = c.Dir
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), c.Env...), c.Files
	out, err := Memory("out")
	if err != nil {
		return "", fmt.Errorf("running %s: %w", c.name(), err)
	}
	defer out.Close()
	complaint, err := Memory("err")
	if err != nil {
		return "", fmt.Errorf("running %s: %w", c.name(), err)
	}
	defer complaint.Close()
	cmd.Stdout, cmd.Stderr = out, complaint
	told := c.follow(out)
	err = c.wait(ctx, cmd)
	told()
	if err != nil {
		return "", fmt.Errorf("%s: %w%s", c.name(), err, tail(complaint))
	}
	return contents(out)
}

// Memory is a file in memory. Unlike a pipe it neither ends a program that
// writes to it when krig dies nor stays open in the program's own children.
func Memory(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// wait starts the program, writes it down, and waits for its end.
func (c Command) wait(ctx context.Context, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	if c.Interrupt {
		stop := context.AfterFunc(ctx, func() {
			_ = cmd.Process.Signal(os.Interrupt) // one that has ended needs none
		})
		defer stop()
	}
	if c.Ledger == nil {
		return cmd.Wait()
	}
	entry, err := c.Ledger.Started(cmd.Process.Pid, c.name())
	if errors.Is(err, os.ErrNotExist) { // it has ended already
		return cmd.Wait()
	}
	werr := cmd.Wait()
	if err != nil {
		return errors.Join(err, werr)
	}
	return errors.Join(werr, c.Ledger.Undo(entry, func() error { return nil }))
}

// name is what the command does: podman run, tc qdisc.
func (c Command) name() string {
	words := slices.Clone(c.Argv[:min(2, len(c.Argv))])
	words[0] = filepath.Base(words[0])
	return strings.Join(words, " ")
}

func contents(f *os.File) (string, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 64<<20))
	return string(data), err
}

// tail is the end of what a program complained, with a colon before it.
func tail(f *os.File) string {
	data, err := contents(f)
	data = strings.TrimSpace(data)
	if err != nil || data == "" {
		return ""
	}
	if len(data) > 1000 {
		data = "..." + data[len(data)-1000:]
	}
	return ": " + data
}
