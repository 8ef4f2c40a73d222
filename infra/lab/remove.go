package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Remove removes one host with its disk and files. Where there is none it does nothing.
func (l *Lab) Remove(ctx context.Context, name string) error {
	unlock, err := l.alone(ctx, lockOf(name))
	if err != nil {
		return err
	}
	defer unlock()
	return l.remove(ctx, name)
}

// RemoveOwn is [Lab.Remove] for an engine that goes by its records: a host that
// another engine has made since is not what they mean, and stays.
func (l *Lab) RemoveOwn(ctx context.Context, name string) (removed bool, err error) {
	unlock, err := l.alone(ctx, lockOf(name))
	if err != nil {
		return false, err
	}
	defer unlock()
	m, ok, err := l.recorded(name)
	if err != nil || ok && m.Engine != l.engine {
		return false, err
	}
	return true, l.remove(ctx, name)
}

func (l *Lab) remove(ctx context.Context, name string) error {
	if err := os.Remove(l.run.Path(recordOf(name))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	device, err := loopOf(l.backing(name))
	if err != nil {
		return err
	}
	if device != "" { // first, or the last write-back would take its time
		if err := l.undo(KindThrottle, device, func() error { return unthrottle(device) }); err != nil {
			return err
		}
	}
	err = l.undo(KindContainer, l.container(name), func() error {
		if err := removeContainers(ctx, l.container(name)); err != nil {
			return err
		}
		return l.run.Ledger.HostGone(name)
	})
	if err != nil {
		return fmt.Errorf("removing host %s: %w", name, err)
	}
	return l.undo(KindLoop, l.backing(name), func() error {
		if err := release(ctx, l.backing(name)); err != nil {
			return err
		}
		return os.RemoveAll(filepath.Join(l.Dir, name))
	})
}

// removeContainers removes containers by name; those that are not there count as removed.
func removeContainers(ctx context.Context, names ...string) error {
	_, err := tool(ctx, append([]string{"podman", "rm", "--force", "--ignore", "--time", "0"}, names...)...)
	return err
}

// release detaches a disk, waits until the kernel has let go of it, and
// removes its backing file.
func release(ctx context.Context, file string) error {
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		device, err := loopOf(file)
		if err != nil {
			return err
		}
		if device == "" {
			break
		}
		if err := errors.Join(unthrottle(device), detach(device)); err != nil {
			return err
		}
		if device, err = loopOf(file); err != nil || device == "" {
			continue
		}
		select {
		case <-limited.Done():
			return fmt.Errorf("detaching %s: something on this machine still uses %s", file, device)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
