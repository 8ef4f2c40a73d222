package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// The guard is a second process that outlives an agent killed outright: it
// ends every process that carries the agent's mark in its environment.

const (
	guardCommand = "guard"
	markName     = "KRIG_LEASE"
	// guardLimit bounds the guard's work: a process in the kernel's hands may not go.
	guardLimit = 10 * time.Second
)

// startGuard marks this process, so that children inherit it, and starts the
// guard. Ending stop ends what still carries the mark.
func startGuard() (stop func(), err error) {
	if err := os.Setenv(markName, rand.Text()); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, guardCommand)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // not in the group that the agent is killed with
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		in.Close()
		_ = cmd.Wait() // bounded by guardLimit; nothing is left to do about its error
	}, nil
}

// guard waits until the agent is gone and ends what it left.
func guard(in io.Reader) error {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	mark := os.Getenv(markName)
	if mark == "" {
		return fmt.Errorf("%s is not set", markName)
	}
	return endMarked(mark, guardLimit)
}

// endMarked kills every process with the mark, but this one, until there is none.
func endMarked(mark string, limit time.Duration) error {
	entry := []byte(markName + "=" + mark)
	deadline := time.After(limit)
	for {
		left := marked(entry)
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that is gone meanwhile is what is wanted
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			return fmt.Errorf("processes %v do not end", left)
		}
	}
}

// marked lists the processes that carry an entry in their environment; zombies have none.
func marked(entry []byte) []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is right
	var found []int
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(f)
		if err != nil {
			continue // gone, or another user's
		}
		for e := range bytes.SplitSeq(env, []byte{0}) {
			if bytes.Equal(e, entry) {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}
