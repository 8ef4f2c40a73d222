package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// child is a process in a group of its own. It ends with the agent: by its
// lease when that ends in order, by the kernel and the guard when the agent is killed.
type child struct {
	cmd     *exec.Cmd
	started time.Time
	exited  chan struct{} // closed when the process itself has been waited for
	ended   time.Time     // valid once exited is closed
	err     error         // of Wait; valid once exited is closed
}

// startChild starts cmd. Its streams are pipes or files of the caller's, not
// copied ones: a grandchild that holds them must not delay the end.
func startChild(cmd *exec.Cmd) (*child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	c := &child{cmd: cmd, exited: make(chan struct{})}
	begun := make(chan error, 1)
	go func() {
		// The kernel sends the signal when the thread that started the child
		// ends: it is kept until the child has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c.started = time.Now()
		if err := cmd.Start(); err != nil {
			begun <- err
			return
		}
		begun <- nil
		c.err = cmd.Wait()
		c.ended = time.Now()
		close(c.exited)
	}()
	if err := <-begun; err != nil {
		return nil, err
	}
	return c, nil
}

// signal sends a signal to the whole group.
func (c *child) signal(s syscall.Signal) error {
	err := syscall.Kill(-c.cmd.Process.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return nil // all of it has ended
	}
	return err
}

// wait waits for the process. When ctx ends it sends the group first, and SIGKILL after
// grace. Whatever of the group outlives the process is killed too.
func (c *child) wait(ctx context.Context, first syscall.Signal, grace time.Duration) error {
	select {
	case <-c.exited:
	case <-ctx.Done():
		c.end(first, grace)
	}
	if err := c.signal(syscall.SIGKILL); err != nil {
		return fmt.Errorf("ending the rest of the group of %s: %w", c.cmd.Path, err)
	}
	<-c.exited // SIGKILL has been sent
	return c.err
}

func (c *child) end(first syscall.Signal, grace time.Duration) {
	_ = c.signal(first) // an error leaves SIGKILL, whose error counts
	select {
	case <-c.exited:
	case <-time.After(grace):
	}
}
