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

// The two holds.
const (
	HoldRun  = "run"  // it ends with krig
	HoldKept = "kept" // it outlives krig, until down or its expiry
)

// A Label says whose a thing is. Containers and networks carry it themselves;
// for everything else it stands in label.json of the run's folder, which the
// thing's name or path leads to.
type Label struct {
	Run    string    `json:"krig-run"`   // the run's short id
	Owner  string    `json:"krig-owner"` // pid:start:boot id
	Hold   string    `json:"krig-hold"`
	Expiry time.Time `json:"krig-expiry"`
	Scope  string    `json:"krig-scope"`
}

// flags are the label as podman's arguments.
func (l Label) flags() []string {
	var out []string
	for _, kv := range [][2]string{
		{"krig-run", l.Run},
		{"krig-owner", l.Owner},
		{"krig-hold", l.Hold},
		{"krig-expiry", l.Expiry.UTC().Format(time.RFC3339)},
		{"krig-scope", l.Scope},
	} {
		out = append(out, "--label", kv[0]+"="+kv[1])
	}
	return out
}

// labelFrom reads a label from podman's map. Whatever is missing or unreadable
// stays empty, which counts as a dead owner's.
func labelFrom(m map[string]string) Label {
	expiry, err := time.Parse(time.RFC3339, m["krig-expiry"])
	if err != nil {
		expiry = time.Time{}
	}
	return Label{Run: m["krig-run"], Owner: m["krig-owner"], Hold: m["krig-hold"], Expiry: expiry, Scope: m["krig-scope"]}
}

// labelFromArgs reads a label from a podman command line.
func labelFromArgs(argv []string) Label {
	m := map[string]string{}
	for i, a := range argv {
		if a != "--label" || i+1 == len(argv) {
			continue
		}
		if k, v, ok := strings.Cut(argv[i+1], "="); ok {
			m[k] = v
		}
	}
	return labelFrom(m)
}

// Alive tells whether the owner lives.
func (l Label) Alive() bool {
	o, err := rundir.ParseOwner(l.Owner)
	return err == nil && o.Alive()
}

// Removable tells whether gc may remove what carries the label at a time: it
// has expired, or its owner is dead and it was not to outlive it.
func (l Label) Removable(now time.Time) bool {
	if !l.Expiry.IsZero() && now.After(l.Expiry) {
		return true
	}
	return !l.Alive() && l.Hold != HoldKept
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

// makeFolder makes a run's folder with its label in it. The folder appears under its name only when the
// label is in it; until then its name carries the owner and the scope.
func makeFolder(labDir string, l Label) error {
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
func removeFolder(dir string, l Label) error {
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

func nascentName(l Label) string {
	return ".krig-" + l.Run + "." + l.Owner + "." + url.PathEscape(l.Scope)
}

var (
	folderForm  = regexp.MustCompile(`^krig-([a-z0-9]{6})$`)
	nascentForm = regexp.MustCompile(`^\.krig-([a-z0-9]{6})\.([0-9]*:?[0-9]*:?[0-9a-f-]*)\.(.*)$`)
)

// folderLabel tells whose folder a directory is; ok is false when it is none of krig's.
func folderLabel(dir string) (l Label, ok bool) {
	name := filepath.Base(dir)
	if m := nascentForm.FindStringSubmatch(name); m != nil {
		scope, err := url.PathUnescape(m[3])
		return Label{Run: m[1], Owner: m[2], Hold: HoldRun, Scope: scope}, err == nil
	}
	m := folderForm.FindStringSubmatch(name)
	if m == nil {
		return Label{}, false
	}
	data, err := os.ReadFile(filepath.Join(dir, labelFile))
	if err != nil || json.Unmarshal(data, &l) != nil || l.Run != m[1] {
		return Label{Run: m[1], Hold: HoldRun}, true
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

func writeLabel(dir string, l Label) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(dir, labelFile), append(data, '\n'), 0o644)
}

// writeWhole writes a file that is either as before or complete.
func writeWhole(path string, data []byte, mode os.FileMode) error {
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
