package provision

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"krig/internal/remote"
	"krig/internal/rundir"
)

//go:embed restored.sh
var restoredScript string

// unmountScript goes on for 10 s: a process that was killed keeps its files
// open for a moment after its end.
const unmountScript = `left=50
while mountpoint -q "$1"; do
	umount "$1" 2>/dev/null && continue
	[ $left -gt 0 ] || { umount "$1"; exit; }
	left=$((left - 1))
	sleep 0.2
done`

const restoreLimit = 3 * time.Minute

// Restore gives hosts back as found, in reverse, and checks: all of a rig's, or those that leave while the
// others stand. Kafka on them must have left its cluster. Packages that were installed stay, and are told.
func Restore(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host) error {
	standing, err := run.Ledger.Standing()
	if err != nil {
		return err
	}
	on := map[string][]rundir.Entry{}
	for _, e := range standing {
		on[e.Scope] = append(on[e.Scope], e)
	}
	var names []string
	for _, h := range hosts {
		if len(on[h.Name]) > 0 {
			names = append(names, h.Name)
		}
	}
	return f.Each(ctx, names, func(ctx context.Context, name string, c *remote.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, restoreLimit)
		defer cancel()
		return restoreHost(ctx, run, c, name, on[name])
	})
}

// restoreHost undoes a host's entries, newest first, and looks whether it is as
// it was. What cannot be undone does not keep the rest from being.
func restoreHost(ctx context.Context, run *rundir.Run, c *remote.Conn, host string, entries []rundir.Entry) error {
	l := layoutOf(run)
	var errs []error
	var kept []string
	for _, e := range entries {
		if e.Kind == kindPackage {
			kept = append(kept, e.Ref)
		}
		errs = append(errs, run.Ledger.Undo(e, func() error { return undo(ctx, c, l, e) }))
	}
	if _, err := runScript(ctx, c, restoredScript, l.dir(), l.state()); err != nil {
		errs = append(errs, fmt.Errorf("not given back as found: %w", err))
	}
	if len(kept) > 0 {
		run.Report(rundir.Event{Stage: "teardown", Host: host, Message: "keeps the packages that were installed: " + strings.Join(kept, " ")})
	}
	return errors.Join(errs...)
}

// undo undoes one entry. What is not there any more is undone already.
func undo(ctx context.Context, c *remote.Conn, l layout, e rundir.Entry) error {
	sh := func(script string, args ...string) error {
		_, err := runScript(ctx, c, script, args...)
		return err
	}
	switch e.Kind {
	case kindPackage:
		return nil // kept, and told
	case kindKafka:
		return sh(stopScript, "1", "config="+e.Ref)
	case kindMount:
		return sh(unmountScript, e.Ref)
	case kindFilesystem:
		return sh(`[ "$(blkid -p -s LABEL -o value "$1")" != "$2" ] || wipefs -aq "$1"`, e.Ref, l.label())
	case kindDirectory:
		if e.Ref != l.dir() && e.Ref != l.state() {
			return fmt.Errorf("%s is not a directory that krig makes: not removed", e.Ref)
		}
		return sh(`rm -rf --one-file-system -- "$1"; rmdir --ignore-fail-on-non-empty "${1%/*}" 2>/dev/null; [ ! -e "$1" ]`, e.Ref)
	}
	return fmt.Errorf("an entry of unknown kind %q: %s", e.Kind, e.Ref)
}
