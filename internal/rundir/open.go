package rundir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	lockFile   = "lock"
	ledgerFile = "ledger.jsonl"
	logFile    = "krig.log"

	timeLayout = "20060102T150405Z"
)

// idForm is a run directory's name: name, UTC time, short id.
var idForm = regexp.MustCompile(`^(.+)-(\d{8}T\d{6}Z)-([a-z0-9]{6})$`)

// Create makes the directory of a new run below runsDir, which it makes too
// where it is missing, and locks the run. Where it cannot be written, nothing
// has been made when it returns.
func Create(runsDir, name string, now time.Time) (*Run, error) {
	abs, err := filepath.Abs(runsDir)
	if err != nil {
		return nil, fmt.Errorf("making a run directory: %w", err)
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return nil, fmt.Errorf("making a run directory: %w: choose another place with --runs", err)
	}
	for range 16 { // a short id that another run has is drawn again
		short := newShort()
		if taken, err := filepath.Glob(filepath.Join(abs, "*-"+short)); err != nil || len(taken) > 0 {
			continue
		}
		dir := filepath.Join(abs, name+"-"+now.UTC().Format(timeLayout)+"-"+short)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, fmt.Errorf("making a run directory: %w: choose another place with --runs", err)
		}
		return begin(dir)
	}
	return nil, fmt.Errorf("making a run directory in %s: found no free id", abs)
}

// begin fills a new run directory, or removes it again.
func begin(dir string) (*Run, error) {
	r, err := Open(dir)
	if err == nil {
		err = r.Lock()
	}
	if err == nil {
		err = r.WriteFile(nil, ledgerFile)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a run directory: %w", err), os.RemoveAll(dir))
	}
	return r, syncDir(filepath.Dir(dir))
}

// Open opens an existing run directory. It changes nothing and takes no lock.
func Open(dir string) (*Run, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening run %s: %w", dir, err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("opening a run: %w", err)
	}
	parts := idForm.FindStringSubmatch(filepath.Base(abs))
	if info, err := os.Stat(abs); err != nil || !info.IsDir() || parts == nil {
		return nil, fmt.Errorf("%s is not a run directory: its name must be <name>-<UTC time>-<short id>", abs)
	}
	return &Run{
		Dir:    abs,
		ID:     parts[0],
		Short:  parts[3],
		Ledger: &Ledger{path: filepath.Join(abs, ledgerFile)},
	}, nil
}

// Close gives the lock up and closes the run's files. The run may not be used afterwards.
func (r *Run) Close() error {
	err := errors.Join(r.Unlock(), r.Ledger.close())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.log != nil {
		err = errors.Join(err, r.log.Close())
		r.log = nil
	}
	return err
}

// Info is what a run directory says of its run without being opened.
type Info struct {
	Dir      string    // absolute
	ID       string    // the directory's name
	Short    string    // the short id
	Name     string    // the experiment's name
	Started  time.Time // UTC, to the second
	Holder   Owner     // the krig that works on it; zero when none does
	Standing int       // things that the ledger says still stand; -1 when it cannot be read
}

// List describes all runs below runsDir, oldest first. A directory that is
// not there has no runs; whatever is not a run directory is left out.
func List(runsDir string) ([]Info, error) {
	entries, err := os.ReadDir(runsDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var out []Info
	for _, e := range entries {
		if info, ok := describe(filepath.Join(runsDir, e.Name())); ok {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b Info) int {
		if c := a.Started.Compare(b.Started); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

func describe(dir string) (Info, bool) {
	r, err := Open(dir)
	if err != nil {
		return Info{}, false
	}
	parts := idForm.FindStringSubmatch(r.ID)
	started, err := time.Parse(timeLayout, parts[2])
	if err != nil {
		return Info{}, false
	}
	info := Info{Dir: r.Dir, ID: r.ID, Short: r.Short, Name: parts[1], Started: started, Standing: -1}
	if o, _, ok := r.Holder(); ok {
		info.Holder = o
	}
	if standing, err := r.Ledger.Standing(); err == nil {
		info.Standing = len(standing)
	}
	return info, true
}

// Resolve finds the directory of the run that ref means: a path, the full id,
// the short id, or the beginning of either when only one run has it.
func Resolve(runsDir, ref string) (string, error) {
	if strings.ContainsRune(ref, filepath.Separator) || idForm.MatchString(filepath.Base(ref)) {
		if r, err := Open(ref); err == nil {
			return r.Dir, nil
		} else if strings.ContainsRune(ref, filepath.Separator) {
			return "", err
		}
	}
	runs, err := List(runsDir)
	if err != nil {
		return "", err
	}
	var found []Info
	for _, r := range runs {
		if r.ID == ref || r.Short == ref {
			return r.Dir, nil
		}
		if ref != "" && (strings.HasPrefix(r.ID, ref) || strings.HasPrefix(r.Short, ref)) {
			found = append(found, r)
		}
	}
	return only(found, ref, runsDir)
}

func only(found []Info, ref, runsDir string) (string, error) {
	switch len(found) {
	case 0:
		return "", fmt.Errorf("no run %q in %s: krig list shows those there are, --runs names another place", ref, runsDir)
	case 1:
		return found[0].Dir, nil
	}
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	return "", fmt.Errorf("%q may mean %s: write more of the one you mean", ref, strings.Join(ids, " or "))
}

// newShort draws six of a-z0-9.
func newShort() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var b [6]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	for i, x := range b {
		b[i] = letters[int(x)%len(letters)]
	}
	return string(b[:])
}
