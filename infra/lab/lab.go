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
	"io/fs"
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
// and lxcfs. Several processes may work on one: the first opens it, the others
// join it.
type Lab struct {
	run    *rundir.Run
	engine string // what makes hosts here, as in an experiment
	label  rundir.Label
	ground
	free func(used []netip.Prefix) (netip.Prefix, error)
}

// ground is what the processes of a run share of its lab: the first writes it
// down. What hosts must not see depends on where a user stands, and is another
// where a tool has put the later ones.
type ground struct {
	Dir    string       `json:"dir"`    // the run's folder
	Client string       `json:"client"` // public half of the run's key
	Subnet netip.Prefix `json:"subnet"`
	Lxcfs  string       `json:"lxcfs"`  // where lxcfs is mounted; "" without it
	Hidden []string     `json:"hidden"` // directories that no host may see
}

// The engines that make hosts here, by their names in an experiment.
const (
	Direct    = "direct"    // krig's own process
	Terraform = "terraform" // processes that the module in infra/terraform/lab starts
)

// ErrNone says that a run has no lab.
var ErrNone = errors.New("the run has no lab: it was never opened, or is taken down")

// keyFile is the run's private key, below the run directory.
var keyFile = filepath.Join("infra", "lab", "client_key")

// groundFile has the ground, below the run directory.
var groundFile = filepath.Join("infra", "lab", "ground.json")

// Open makes what of the ground is missing and brings the label up to date.
// Hosts do not see what this process's directory and environment name, nor
// what those of an earlier one did.
func Open(ctx context.Context, run *rundir.Run, label rundir.Label) (*Lab, error) {
	l := &Lab{run: run, engine: Direct, label: label, free: freeSubnet}
	if err := l.prepare(ctx); err != nil {
		return nil, fmt.Errorf("preparing the lab: %w", err)
	}
	return l, nil
}

// Join is a lab that another process has opened, for an engine that makes hosts
// in processes of their own. It makes nothing. The error is [ErrNone] where no
// lab is open.
func Join(run *rundir.Run, engine string) (*Lab, error) {
	l := &Lab{run: run, engine: engine, free: freeSubnet}
	err := run.ReadJSON(&l.ground, groundFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !exists(l.Dir) {
		err = ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("joining the lab of run %s: %w", run.ID, err)
	}
	l.label, _ = folderLabel(l.Dir)
	return l, nil
}

func (l *Lab) prepare(ctx context.Context) error {
	labDir, err := Dir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(labDir, 0o755); err != nil {
		return err
	}
	unlock, err := l.alone(ctx, "lock")
	if err != nil {
		return err
	}
	defer unlock()
	var before ground
	if err := l.run.ReadJSON(&before, groundFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.Dir = filepath.Join(labDir, "krig-"+l.run.Short)
	l.Hidden = outermost(present(append(masks(l.run.Dir, labDir), before.Hidden...)))
	if err := l.fill(ctx, labDir); err != nil {
		return err
	}
	return l.run.WriteJSON(l.ground, groundFile)
}

// fill makes what of the ground is missing.
func (l *Lab) fill(ctx context.Context, labDir string) (err error) {
	if err := l.folder(labDir); err != nil {
		return err
	}
	if err := writeWhole(l.conf(), containersConf(), 0o644); err != nil {
		return err
	}
	if l.Client, err = clientKey(l.run.Path(keyFile)); err != nil {
		return err
	}
	if err := l.joinNetwork(ctx); err != nil {
		return err
	}
	return l.startLxcfs(ctx)
}

// conf is the run's own configuration of podman.
func (l *Lab) conf() string { return filepath.Join(l.Dir, "containers.conf") }

// folder makes the run's folder, or renews the label of the one there is.
func (l *Lab) folder(labDir string) error {
	if _, err := os.Stat(l.Dir); err == nil {
		return writeLabel(l.Dir, l.label)
	}
	return l.record(KindFolder, l.Dir, func() error { return makeFolder(labDir, l.label) })
}

// alone keeps other processes of the run from doing the same: it holds a lock
// on a file below the run's own folder of the lab.
func (l *Lab) alone(ctx context.Context, file string) (unlock func(), err error) {
	path := l.run.Path("infra", "lab", file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	locked := make(chan struct{})
	var failed error
	go func() {
		defer close(locked)
		failed = retryInterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) })
	}()
	select {
	case <-locked:
		if failed != nil {
			return nil, errors.Join(failed, f.Close())
		}
		return func() { f.Close() }, nil
	case <-ctx.Done():
		go func() {
			<-locked
			f.Close() // gives up a lock that came too late
		}()
		return nil, fmt.Errorf("waiting for another process of run %s: %w", l.run.ID, ctx.Err())
	}
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
