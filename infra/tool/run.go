package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// run asks a program for its version. What is called like the program may be
// anything: it gets a limited time, its own process group, which ends with it,
// and no more room than an answer takes.
func run(ctx context.Context, limit time.Duration, env []string, path string) (out, complaint string, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	cmd := exec.CommandContext(limited, path, "version")
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var stdout, stderr head
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if limited.Err() != nil {
		return "", "", context.Cause(limited)
	}
	if words := plain(stderr.String()); err != nil && words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	return stdout.String(), stderr.String(), err
}

// head keeps the beginning of what is written to it. It does not embed a
// buffer, whose ReadFrom would take in everything.
type head struct{ kept []byte }

const headSize = 64 << 10

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), headSize-len(h.kept))]...)
	return len(p), nil
}

func (h *head) String() string { return string(h.kept) }

// builds are the programs of a name that `make tools` built, the newest first.
// A build goes on in a directory whose name is no version.
func builds(name string) ([]candidate, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("finding what `make tools` built: %w", err)
	}
	var out []candidate
	for _, e := range entries {
		if wholeVersion.MatchString(e.Name()) {
			root := filepath.Join(dir, name, e.Name())
			out = append(out, candidate{path: filepath.Join(root, "bin", name), root: root, version: e.Name()})
		}
	}
	slices.SortFunc(out, func(a, b candidate) int { return compare(b.version, a.version) })
	return out, nil
}
