// Package rundir owns the run directory: its layout, its lock, its ledger,
// krig's log, and the plain values that one stage writes and the next reads
// (Host, Prepared, Limits, Cluster). It does nothing to the world outside the
// directory.
package rundir

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Run is an open run directory. Its methods may be called from several goroutines.
type Run struct {
	Dir    string // absolute
	ID     string // the directory's own name: <name>-<UTC time>-<short id>
	Short  string // the short id alone: six of a-z0-9; names of krig's things contain krig-<Short>
	Ledger *Ledger

	mu       sync.Mutex
	listener func(Event)
	log      *os.File // opened by the first line
	lock     *os.File // nil when this process does not hold the run
}

// An Event is one line of progress. Stages report them through [Run.Report].
type Event struct {
	At      time.Time
	Stage   string // infra, prepare, probe, cluster, bench, settle, report, teardown
	Host    string // "" when it concerns no single host
	Message string

	// Progress, where it is known.
	CellsDone, CellsTotal int
	Throughput            float64 // bytes/s at present; 0 when no load runs
}

// Listen hands every later event to f, one at a time. nil hands them to nobody.
func (r *Run) Listen(f func(Event)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener = f
}

// Report writes an event to krig.log and hands it to the listener.
func (r *Run) Report(e Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Message != "" {
		r.writeLog(e)
	}
	if r.listener != nil {
		r.listener(e)
	}
}

// writeLog adds a line to krig.log. A log that cannot be written stops no run:
// what cannot be lost is in the ledger and in the results.
func (r *Run) writeLog(e Event) {
	if r.log == nil {
		f, err := os.OpenFile(r.Path(logFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			return
		}
		r.log = f
	}
	host := ""
	if e.Host != "" {
		host = " " + e.Host + ":"
	}
	fmt.Fprintf(r.log, "%s %s:%s %s\n", e.At.UTC().Format(time.RFC3339Nano), e.Stage, host, e.Message)
}

// Path joins elements below the run directory.
func (r *Run) Path(elem ...string) string {
	return filepath.Join(append([]string{r.Dir}, elem...)...)
}

// WriteJSON writes v to a file below the run directory, complete or not at
// all: it is synced to disk before the name appears.
func (r *Run) WriteJSON(v any, elem ...string) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Join(elem...), err)
	}
	return r.WriteFile(append(data, '\n'), elem...)
}

// WriteFile is [Run.WriteJSON] for bytes.
func (r *Run) WriteFile(data []byte, elem ...string) error {
	path := r.Path(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// ReadJSON reads a file that [Run.WriteJSON] wrote.
func (r *Run) ReadJSON(v any, elem ...string) error {
	data, err := os.ReadFile(r.Path(elem...))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", r.Path(elem...), err)
	}
	return nil
}
