package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"krig/internal/rundir"
)

// flags are a label as podman's arguments. Containers and networks carry it
// themselves. For everything else it stands in label.json of the run's folder,
// which the thing's name or path leads to; that one counts for all of the run,
// and is brought up to date.
func flags(l rundir.Label) []string {
	var out []string
	for _, kv := range l.Tags() {
		out = append(out, "--label", kv[0]+"="+kv[1])
	}
	return out
}

// labelFromArgs reads a label from a podman command line.
func labelFromArgs(argv []string) rundir.Label {
	m := map[string]string{}
	for i, a := range argv {
		if a != "--label" || i+1 == len(argv) {
			continue
		}
		if k, v, ok := strings.Cut(argv[i+1], "="); ok {
			m[k] = v
		}
	}
	return rundir.LabelFrom(m)
}

// Dir is the folder below which every run's disks and other files of the lab
// lie: KRIG_LAB_DIR, or ~/.cache/krig/lab.
func Dir() (string, error) {
	if d := os.Getenv("KRIG_LAB_DIR"); d != "" {
		return filepath.Abs(d)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("finding the lab's data folder: %w: set KRIG_LAB_DIR", err)
	}
	return filepath.Join(home, ".cache", "krig", "lab"), nil
}

const labelFile = "label.json"

// makeFolder makes a run's folder. It appears under its name only when its
// label is in it; until then its name carries the owner and the scope.
func makeFolder(labDir string, l rundir.Label) error {
	nascent, dir := filepath.Join(labDir, nascentName(l)), filepath.Join(labDir, "krig-"+l.Run)
	err := os.MkdirAll(nascent, 0o755)
	if err == nil {
		err = writeLabel(nascent, l)
	}
	if err == nil {
		err = os.Rename(nascent, dir)
	}
	if _, there := os.Stat(dir); err != nil && there == nil { // another process of the run was first
		return os.RemoveAll(nascent)
	}
	return err
}

// removeFolder removes a run's folder: under the nascent name, its label last,
// so that it can be told whose it is until it is gone.
func removeFolder(dir string, l rundir.Label) error {
	nascent := filepath.Join(filepath.Dir(dir), nascentName(l))
	if dir != nascent {
		if err := errors.Join(os.RemoveAll(nascent), os.Rename(dir, nascent)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(nascent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != labelFile {
			err = errors.Join(err, os.RemoveAll(filepath.Join(nascent, e.Name())))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(nascent)
}

func nascentName(l rundir.Label) string {
	return ".krig-" + l.Run + "." + l.Owner + "." + url.PathEscape(l.Scope)
}

var (
	folderForm  = regexp.MustCompile(`^krig-([a-z0-9]{6})$`)
	nascentForm = regexp.MustCompile(`^\.krig-([a-z0-9]{6})\.([0-9]*:?[0-9]*:?[0-9a-f-]*)\.(.*)$`)
)

// folderLabel tells whose folder a directory is; ok is false when it is none of krig's.
func folderLabel(dir string) (l rundir.Label, ok bool) {
	name := filepath.Base(dir)
	if m := nascentForm.FindStringSubmatch(name); m != nil {
		scope, err := url.PathUnescape(m[3])
		return rundir.Label{Run: m[1], Owner: m[2], Hold: rundir.HoldRun, Scope: scope}, err == nil
	}
	m := folderForm.FindStringSubmatch(name)
	if m == nil {
		return rundir.Label{}, false
	}
	data, err := os.ReadFile(filepath.Join(dir, labelFile))
	if err != nil || json.Unmarshal(data, &l) != nil || l.Run != m[1] {
		return rundir.Label{Run: m[1], Hold: rundir.HoldRun}, true
	}
	return l, true
}

// folders lists the runs' folders below a data folder; none when that is not there.
func folders(labDir string) ([]string, error) {
	entries, err := os.ReadDir(labDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the lab's folders: %w", err)
	}
	var out []string
	for _, e := range entries {
		dir := filepath.Join(labDir, e.Name())
		if _, ok := folderLabel(dir); ok && e.IsDir() {
			out = append(out, dir)
		}
	}
	return out, nil
}

func writeLabel(dir string, l rundir.Label) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(dir, labelFile), append(data, '\n'), 0o644)
}

// writeWhole writes a file that is either as before or complete, whoever else
// writes it.
func writeWhole(path string, data []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}

// Renew writes another expiry into the label of a run's folder, where the run
// has one. All that the run has in the lab goes by that label.
func Renew(run *rundir.Run, expiry time.Time) error {
	labDir, err := Dir()
	if err != nil {
		return err
	}
	dir := filepath.Join(labDir, "krig-"+run.Short)
	l, ok := folderLabel(dir)
	if !ok || !exists(dir) {
		return nil
	}
	l.Expiry = expiry
	return writeLabel(dir, l)
}
