package lab

import (
	"errors"
	"os"
	"strings"

	"krig/internal/rundir"
)

// Forget marks the lab's entries in the ledger as undone, and those of what
// stood on its hosts, and removes its keys and records from the run directory.
// It is called when [Find] finds nothing of the run.
func Forget(run *rundir.Run) error {
	standing, err := run.Ledger.Standing()
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range standing {
		if !Makes(e.Kind) || e.Scope != "" {
			continue
		}
		errs = append(errs, run.Ledger.Undo(e, func() error {
			if host, ok := strings.CutPrefix(e.Ref, containerName(run, "")); ok && e.Kind == KindContainer {
				return run.Ledger.HostGone(host)
			}
			return closed(e.Kind, e.Ref)
		}))
	}
	return errors.Join(append(errs, os.RemoveAll(run.Path("infra", "lab")))...)
}

// closed does what is left to do for a thing of the ledger that [Find] does not
// see: the rule of a device that no longer belongs to the run, unless the
// device has another file by now; and a folder in another data folder than
// this process's.
func closed(kind, ref string) error {
	if l, ok := folderLabel(ref); kind == KindFolder && ok && exists(ref) {
		return removeFolder(ref, l)
	}
	if kind != KindThrottle {
		return nil
	}
	all, err := loops()
	if err != nil || all[ref] != "" {
		return err
	}
	return unthrottle(ref)
}
