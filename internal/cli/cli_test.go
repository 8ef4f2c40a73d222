package cli

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

func TestFindRuns(t *testing.T) {
	dir := t.TempDir()
	for _, id := range []string{"zebra-20261129T080000Z-aaaaaa", "demo-20261130T080000Z-bbbbbb", "demo-two-20261130T090000Z-cccccc"} {
		if err := os.Mkdir(filepath.Join(dir, id), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes-20261201T000000Z-dddddd"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	a := &app{runsDir: dir}
	for name, want := range map[string]string{
		"last":                             "demo-two-20261130T090000Z-cccccc",
		"zebra":                            "zebra-20261129T080000Z-aaaaaa",
		"bbbbbb":                           "demo-20261130T080000Z-bbbbbb",
		"demo-20261130T080000Z-bbbbbb":     "demo-20261130T080000Z-bbbbbb",
		"demo-2":                           "demo-20261130T080000Z-bbbbbb",
		"demo":                             "may mean demo-20261130T080000Z-bbbbbb or demo-two-20261130T090000Z-cccccc",
		"mouse":                            `no run "mouse" in`,
		"notes":                            `no run "notes" in`,
		filepath.Join(dir, "demo-nowhere"): "opening a run: ",
	} {
		got, err := a.find(name)
		switch {
		case err == nil && filepath.Base(got) != want:
			t.Errorf("%s is found as %s, want %s", name, got, want)
		case err != nil && !strings.Contains(err.Error(), want):
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		var bad usageError
		if err != nil && !errors.As(err, &bad) {
			t.Errorf("%s: %v is no error of usage", name, err)
		}
	}
}

func TestArchiveHasNoSecrets(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 200)
	for name, f := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"krig.log":           {"line\n", 0o600}, // by a strict umask
		"logs/b1/server.log": {"started\n", 0o644},
		"infra/terraform/r/module/terraform.tfstate": {"{}", 0o644},
		"private":              {"only its owner's\n", 0o600},
		"ssl/broker.key":       {"k\n", 0o644},
		"ssl/broker.pem":       {"k\n", 0o644},
		"logs/b1/pasted.log":   {long + "\n-----BEGIN RSA PRIVATE KEY-----\nMII\n", 0o644},
		"cells/one/1/raw.hlog": {"histogram\n", 0o644},
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.text), f.mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	pr, pw := io.Pipe()
	hidden := make(chan []string, 1)
	go func() {
		names, err := archive(pw, &rundir.Run{Dir: dir, ID: "demo"}, "krig 1\n")
		pw.CloseWithError(err)
		hidden <- names
	}()
	got := untar(t, pr)
	if left := strings.Join(<-hidden, " "); left != "infra/terraform logs/b1/pasted.log private ssl/broker.key ssl/broker.pem" {
		t.Errorf("left out: %s", left)
	}
	want := []string{"demo/cells/one/1/raw.hlog", "demo/krig.log", "demo/logs/b1/server.log", "demo/versions.txt"}
	if !slices.Equal(got, want) {
		t.Errorf("the archive holds %q, want %q", got, want)
	}
}

func untar(t *testing.T, r io.Reader) []string {
	t.Helper()
	zipped, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tr := tar.NewReader(zipped); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, tr); err != nil || n != h.Size {
			t.Errorf("%s: %d of %d bytes, %v", h.Name, n, h.Size, err)
		}
		names = append(names, h.Name)
	}
}

func TestChooseHosts(t *testing.T) {
	all := []rundir.Host{
		{Name: "b1", Roles: []rundir.Role{rundir.Broker, rundir.Controller}},
		{Name: "b2", Roles: []rundir.Role{rundir.Broker}},
		{Name: "w1", Roles: []rundir.Role{rundir.Worker}},
	}
	for who, want := range map[string]string{
		"b2": "b2", "broker": "b1 b2", "brokers": "b1 b2", "controller": "b1", "worker": "w1", "all": "b1 b2 w1", "b": "", "machine": "",
	} {
		if got := strings.Join(hostNames(choose(all, who)), " "); got != want {
			t.Errorf("%s means %q, want %q", who, got, want)
		}
	}
}

func TestSiftTellsRemovedFromLeft(t *testing.T) {
	thing := func(ref string, may bool) infra.Leftover {
		return infra.Leftover{Kind: "container", Ref: ref, Label: infra.Label{Run: "abcdef"}, May: may}
	}
	gone, stuck, kept := thing("b1", true), thing("b2", true), thing("b3", false)
	got := sift([]infra.Leftover{gone, stuck}, []infra.Leftover{stuck, kept})
	if len(got.Removed) != 1 || got.Removed[0].Ref != "b1" || len(got.Left) != 1 || got.Left[0].Ref != "b2" ||
		len(got.Stands) != 1 || got.Stands[0].Ref != "b3" {
		t.Errorf("sifted as %+v", got)
	}
}

func TestWordsForTime(t *testing.T) {
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m30s", 12*time.Minute + 40*time.Second: "13m", 2 * time.Hour: "2h0m",
	} {
		if got := round(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestOnlyTheLabNeverAsks(t *testing.T) {
	lab := &experiment.Cell{Rig: experiment.Rig{Provider: "lab"}}
	cloud := &experiment.Cell{Rig: experiment.Rig{Provider: "cloud"}}
	if atStake(&experiment.Plan{Cells: []*experiment.Cell{lab, lab}}) {
		t.Error("the lab asks")
	}
	if !atStake(&experiment.Plan{Cells: []*experiment.Cell{lab, cloud}}) {
		t.Error("a rig from elsewhere does not ask")
	}
	a := &app{IO: IO{In: strings.NewReader("y\n"), Err: io.Discard}, show: newProgress(io.Discard)}
	var bad usageError
	if err := a.ask(t.Context(), "Go on?"); !errors.As(err, &bad) {
		t.Errorf("without a terminal a question gives %v", err)
	}
}

func TestStates(t *testing.T) {
	stands := []string{"1 container"}
	for _, c := range []struct {
		l    listed
		busy bool
		want string
	}{
		{listed{Total: 2, Standing: stands}, true, "running"},
		{listed{Total: 2, Done: 2, Standing: stands}, false, "standing"},
		{listed{Total: 2, Done: 1}, false, "unfinished"},
		{listed{}, false, "unfinished"},
		{listed{Total: 2, Done: 2}, false, "done"},
	} {
		if got := state(c.l, c.busy); got != c.want {
			t.Errorf("%+v, busy %v: %s, want %s", c.l, c.busy, got, c.want)
		}
	}
	got := kinds([]rundir.Entry{
		{Kind: "network"}, {Kind: "directory", Scope: "b1"}, {Kind: "container"}, {Kind: "directory", Scope: "b2"}, {Kind: "directory", Scope: "b1"},
	})
	if strings.Join(got, ", ") != "1 network, 2 directories, 1 container" {
		t.Errorf("kinds: %q", got)
	}
}

// A run on a reused rig is newer than the run whose rig it is.
func TestLastIsTheNewestThatStands(t *testing.T) {
	dir := t.TempDir()
	entry := func(state string) string {
		return `{"id":"1","kind":"container","scope":"","ref":"b1","state":"` + state + `","at":"2026-11-30T08:00:00Z"}` + "\n"
	}
	for id, ledger := range map[string]string{
		"rig-20261130T080000Z-aaaaaa":   entry("intent") + entry("done"),
		"other-20261130T090000Z-bbbbbb": entry("intent") + entry("undone"),
	} {
		if err := os.Mkdir(filepath.Join(dir, id), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, id, "ledger.jsonl"), []byte(ledger), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{runsDir: dir}
	if got, err := a.findStanding("last"); err != nil || filepath.Base(got) != "rig-20261130T080000Z-aaaaaa" {
		t.Errorf("of what stands the last is %s, %v", got, err)
	}
	if got, err := a.findStanding("other"); err != nil || filepath.Base(got) != "other-20261130T090000Z-bbbbbb" {
		t.Errorf("by name: %s, %v", got, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "rig-20261130T080000Z-aaaaaa")); err != nil {
		t.Fatal(err)
	}
	if got, err := a.findStanding("last"); err != nil || filepath.Base(got) != "other-20261130T090000Z-bbbbbb" {
		t.Errorf("where nothing stands the last is %s, %v", got, err)
	}
}
