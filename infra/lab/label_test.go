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

func someLabel() Label {
	return Label{Run: "abc123", Owner: rundir.Self().String(), Hold: HoldRun, Expiry: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Scope: "a/b c%."}
}

func TestLabelOnPodman(t *testing.T) {
	want := someLabel()
	if got := labelFromArgs(append([]string{"podman", "run"}, want.flags()...)); got != want {
		t.Errorf("%+v reads back as %+v", want, got)
	}
	if got := labelFromArgs([]string{"podman", "ps", "--label", "other=1", "--label"}); got != (Label{}) {
		t.Errorf("a command without label has %+v", got)
	}
}

func TestRemovable(t *testing.T) {
	dead := rundir.Self()
	dead.Start++
	now := time.Now()
	for _, c := range []struct {
		name   string
		owner  string
		hold   string
		expiry time.Time
		want   bool
	}{
		{"alive", rundir.Self().String(), HoldRun, now.Add(time.Hour), false},
		{"alive, no expiry", rundir.Self().String(), HoldRun, time.Time{}, false},
		{"alive, expired", rundir.Self().String(), HoldRun, now.Add(-time.Second), true},
		{"dead", dead.String(), HoldRun, now.Add(time.Hour), true},
		{"dead, kept", dead.String(), HoldKept, now.Add(time.Hour), false},
		{"dead, kept, no expiry", dead.String(), HoldKept, time.Time{}, false},
		{"dead, kept, expired", dead.String(), HoldKept, now.Add(-time.Second), true},
		{"nobody's", "", HoldRun, time.Time{}, true},
		{"unreadable", "x", "", time.Time{}, true},
	} {
		l := Label{Owner: c.owner, Hold: c.hold, Expiry: c.expiry}
		if got := l.Removable(now); got != c.want {
			t.Errorf("%s: removable is %v", c.name, got)
		}
	}
}

// A folder tells whose it is at each step of its life.
func TestFolder(t *testing.T) {
	dir, l := t.TempDir(), someLabel()
	nascent := filepath.Join(dir, nascentName(l))
	if err := os.Mkdir(nascent, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, ok := folderLabel(nascent); !ok || got.Run != l.Run || got.Owner != l.Owner || got.Scope != l.Scope || got.Hold != HoldRun {
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

func FuzzFolderLabel(f *testing.F) {
	f.Add("abc123", "12:34:09-ab", "scope")
	f.Add("abc123", "", "a.b:c/d%")
	f.Fuzz(func(t *testing.T, run, owner, scope string) {
		l := Label{Run: run, Owner: owner, Hold: HoldRun, Scope: scope}
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
