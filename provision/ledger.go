package provision

import (
	"slices"

	"krig/internal/rundir"
)

// Kinds of things that this stage does to hosts. Each says in Ref what finds it again.
const (
	kindDirectory  = "directory"  // a directory, with all in it
	kindFilesystem = "filesystem" // a device that held nothing before
	kindMount      = "mount"      // a mount point
	kindPackage    = "package"    // an installed package; kept
	kindKafka      = "kafka"      // a process: the server.properties that it alone has as an argument, known before its id is
)

// recorded writes every entry's intent, does the thing, and records that all
// of it is done.
func recorded(run *rundir.Run, entries []rundir.Entry, do func() error) error {
	if len(entries) == 0 {
		return do()
	}
	return run.Ledger.Do(entries[0], func() error { return recorded(run, entries[1:], do) })
}

// undone records that things of one kind on a host are no more.
func undone(run *rundir.Run, host, kind string, refs ...string) error {
	standing, err := run.Ledger.Standing()
	if err != nil {
		return err
	}
	for _, e := range standing {
		if e.Scope == host && e.Kind == kind && slices.Contains(refs, e.Ref) {
			if err := run.Ledger.Undo(e, func() error { return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}
