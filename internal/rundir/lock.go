package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// LockedError says that another krig works on the run.
type LockedError struct {
	Run   string // the run's id
	Owner Owner  // zero when the other has not written it yet
	Since time.Time
}

func (e *LockedError) Error() string {
	if e.Owner.PID == 0 {
		return fmt.Sprintf("run %s is in use by another krig: wait until it ends", e.Run)
	}
	return fmt.Sprintf("run %s is in use by krig with process id %d since %s: wait until it ends, or stop it",
		e.Run, e.Owner.PID, e.Since.UTC().Format("2006-01-02 15:04:05 UTC"))
}

// Lock makes this process the one krig that works on the run, until
// [Run.Unlock], [Run.Close] or its end. Where another krig has the run the
// error is a *[LockedError].
func (r *Run) Lock() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock != nil {
		return nil
	}
	f, err := os.OpenFile(r.Path(lockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("locking run %s: %w", r.ID, err)
	}
	err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		owner, since := readLock(f)
		return errors.Join(&LockedError{Run: r.ID, Owner: owner, Since: since}, f.Close())
	}
	if err == nil {
		err = writeLock(f)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("locking run %s: %w", r.ID, err), f.Close())
	}
	r.lock = f
	return nil
}

// Unlock lets another krig work on the run. Without a lock it does nothing.
func (r *Run) Unlock() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lock == nil {
		return nil
	}
	err := errors.Join(r.lock.Truncate(0), r.lock.Close())
	r.lock = nil
	return err
}

// Holder is the krig that works on the run, and since when; ok is false when none does.
func (r *Run) Holder() (o Owner, since time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.Open(r.Path(lockFile))
	if err != nil {
		return Owner{}, time.Time{}, false
	}
	defer f.Close()
	o, since = readLock(f)
	return o, since, o.Alive()
}

func writeLock(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(Self().String()+" "+time.Now().UTC().Format(time.RFC3339Nano)+"\n"), 0)
	return err
}

// readLock reads who holds a lock; zero values when that is not (yet) written.
func readLock(f *os.File) (Owner, time.Time) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	if err != nil {
		return Owner{}, time.Time{}
	}
	return parseLock(string(data))
}

func parseLock(text string) (Owner, time.Time) {
	who, when, _ := strings.Cut(strings.TrimSpace(text), " ")
	o, err := ParseOwner(who)
	if err != nil {
		return Owner{}, time.Time{}
	}
	since, err := time.Parse(time.RFC3339Nano, when)
	if err != nil {
		return Owner{}, time.Time{}
	}
	return o, since
}
