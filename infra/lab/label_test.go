package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"krig/internal/rundir"
)

func someLabel() rundir.Label {
	return rundir.Label{Run: "abc123", Owner: rundir.Self().String(), Hold: rundir.HoldRun, Expiry: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Scope: "a/b c%."}
}

func TestLabelOnPodman(t *testing.T) {
	want := someLabel()
	if got := labelFromArgs(append([]string{"podman", "run"}, flags(want)...)); got != want {
		t.Errorf("%+v reads back as %+v", want, got)
	}
	if got := labelFromArgs([]string{"podman", "ps", "--label", "other=1", "--label"}); got != (rundir.Label{}) {
		t.Errorf("a command without label has %+v", got)
	}
}

// A folder tells whose it is at each step of its life.
func TestFolder(t *testing.T) {
	dir, l := t.TempDir(), someLabel()
	nascent := filepath.Join(dir, nascentName(l))
	if err := os.Mkdir(nascent, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, ok := folderLabel(nascent); !ok || got.Run != l.Run || got.Owner != l.Owner || got.Scope != l.Scope || got.Hold != rundir.HoldRun {
		t.Errorf("before its label is written: %+v, %v", got, ok)
	}
	if err := makeFolder(dir, l); err != nil {
		t.Fatal(err)
	}
	if err := makeFolder(dir, l); err != nil {
		t.Errorf("made by a second process: %v", err)
	}
	found, err := folders(dir)
	if err != nil || !slices.Equal(found, []string{filepath.Join(dir, "krig-abc123")}) {
		t.Fatalf("found %v (%v)", found, err)
	}
	if got, ok := folderLabel(found[0]); !ok || got != l {
		t.Errorf("whole: %+v, %v, want %+v", got, ok, l)
	}
	if err := os.WriteFile(filepath.Join(found[0], "disk"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeFolder(found[0], l); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v (%v)", left, err)
	}
}

func TestFolderOfNobody(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]bool{
		"krig-abc123": true, "krig-abc1234": false, "krig-ABC123": false, "abc123": false, ".krig-abc123": false,
		".krig-abc123..": true, ".krig-abc123.1:2:a-b.s": true,
	} {
		l, ok := folderLabel(filepath.Join(dir, name))
		if ok != want || ok && (l.Run != "abc123" || !l.Removable(time.Now())) {
			t.Errorf("%s: %+v, %v", name, l, ok)
		}
	}
}

// A later expiry is read by all that look; a run without a folder has none.
func TestRenew(t *testing.T) {
	dir, l := t.TempDir(), someLabel()
	t.Setenv("KRIG_LAB_DIR", dir)
	run := &rundir.Run{Short: l.Run}
	later := l.Expiry.Add(time.Hour)
	if err := Renew(run, later); err != nil {
		t.Errorf("without a folder: %v", err)
	}
	if found, err := folders(dir); err != nil || len(found) > 0 {
		t.Errorf("renewing made %v (%v)", found, err)
	}
	if err := makeFolder(dir, l); err != nil {
		t.Fatal(err)
	}
	if err := Renew(run, later); err != nil {
		t.Fatal(err)
	}
	l.Expiry = later
	if got, ok := folderLabel(filepath.Join(dir, "krig-abc123")); !ok || got != l {
		t.Errorf("renewed: %+v, %v, want %+v", got, ok, l)
	}
}

func FuzzFolderLabel(f *testing.F) {
	f.Add("abc123", "12:34:09-ab", "scope")
	f.Add("abc123", "", "a.b:c/d%")
	f.Fuzz(func(t *testing.T, run, owner, scope string) {
		l := rundir.Label{Run: run, Owner: owner, Hold: rundir.HoldRun, Scope: scope}
		name := nascentName(l)
		if strings.Contains(name, "/") {
			return // never a run's id or an owner
		}
		got, ok := folderLabel("/data/" + name)
		if o, err := rundir.ParseOwner(owner); err != nil || o.String() != owner || strings.Trim(o.Boot, "0123456789abcdef-") != "" {
			return
		}
		if len(run) == 6 && strings.Trim(run, "abcdefghijklmnopqrstuvwxyz0123456789") == "" && (!ok || got != l) {
			t.Errorf("%q is %+v, %v", name, got, ok)
		}
	})
}
