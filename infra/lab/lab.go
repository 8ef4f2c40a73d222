// Package lab makes hosts of a rig on this machine: podman containers with the
// machine's own root as a private overlay, each with its own network, address,
// sshd, disk and limits. It owns the one primitive, [Lab.Create] and
// [Lab.Remove] of one host, however it is reached, and finds and removes
// whatever of it was left.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"krig/internal/rundir"
)

// The kinds of things that the lab makes, as in the ledger and in what [Find] finds.
const (
	KindProcess   = "process" // one of krig's own that still makes something
	KindContainer = "container"
	KindNetwork   = "network"
	KindLxcfs     = "lxcfs"
	KindThrottle  = "throttle"
	KindLoop      = "loop"
	KindFolder    = "folder" // the run's folder in the data folder: disks, keys, what hosts wrote
)

// A Lab is the ground that a run's hosts stand on: its folder, network, key
// and lxcfs. Several processes may work on one.
type Lab struct {
	run    *rundir.Run
	label  rundir.Label
	dir    string // the run's folder
	conf   string // containers.conf
	client string // public half of the run's key
	subnet netip.Prefix
	lxcfs  string // where lxcfs is mounted; "" without it
	free   func(used []netip.Prefix) (netip.Prefix, error)
}

// keyFile is the run's private key, below the run directory.
var keyFile = filepath.Join("infra", "lab", "client_key")

// Open makes what of the ground is missing and brings the label up to date.
func Open(ctx context.Context, run *rundir.Run, label rundir.Label) (*Lab, error) {
	l := &Lab{run: run, label: label, free: freeSubnet}
	if err := l.ground(ctx); err != nil {
		return nil, fmt.Errorf("preparing the lab: %w", err)
	}
	return l, nil
}

func (l *Lab) ground(ctx context.Context) error {
	labDir, err := Dir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(labDir, 0o755); err != nil {
		return err
	}
	l.dir = filepath.Join(labDir, "krig-"+l.run.Short)
	if err := l.folder(labDir); err != nil {
		return err
	}
	unlock, err := l.alone()
	if err != nil {
		return err
	}
	defer unlock()
	l.conf = filepath.Join(l.dir, "containers.conf")
	if err := writeWhole(l.conf, containersConf(), 0o644); err != nil {
		return err
	}
	if l.client, err = clientKey(l.run.Path(keyFile)); err != nil {
		return err
	}
	if err := l.joinNetwork(ctx); err != nil {
		return err
	}
	return l.startLxcfs(ctx)
}

// folder makes the run's folder, or renews the label of the one there is.
func (l *Lab) folder(labDir string) error {
	if _, err := os.Stat(l.dir); err == nil {
		return writeLabel(l.dir, l.label)
	}
	return l.record(KindFolder, l.dir, func() error { return makeFolder(labDir, l.label) })
}

// alone keeps other processes of the run from making the same ground.
func (l *Lab) alone() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(l.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := retryInterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}

// record does a thing by the ledger.
func (l *Lab) record(kind, ref string, do func() error) error {
	return l.run.Ledger.Do(rundir.Entry{Kind: kind, Ref: ref}, do)
}

// undo undoes a thing and every entry of the ledger that stands for it.
func (l *Lab) undo(kind, ref string, do func() error) error {
	if err := do(); err != nil {
		return err
	}
	standing, err := l.run.Ledger.Standing()
	for _, e := range standing {
		if e.Kind == kind && e.Ref == ref {
			err = errors.Join(err, l.run.Ledger.Undo(e, func() error { return nil }))
		}
	}
	return err
}
