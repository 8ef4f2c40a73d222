package pipeline

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"krig/internal/experiment"
)

// A module's directory is part of what a run may be resumed with.
func TestIdentityHasModules(t *testing.T) {
	dir := t.TempDir()
	module, file := filepath.Join(dir, "net"), filepath.Join(dir, "exp.yaml")
	text := "version: 1\nname: t\nseed: 1\nrigs:\n  own:\n    provider: module\n    brokers: {count: 1}\n    workers: {count: 1}\n    module: {path: net, ssh: {agent: true}}\nbench: {duration: 10s}\n"
	if err := os.Mkdir(module, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	now := func() map[string]string {
		t.Helper()
		f, err := experiment.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		id, err := identify(f, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return id.Files
	}
	then := now()
	if got := differences("", then, now()); len(got) > 0 {
		t.Errorf("no change gives %q", got)
	}
	if err := os.WriteFile(filepath.Join(module, "main.tf"), []byte("# new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := differences("", then, now()), []string{module + " changed"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
