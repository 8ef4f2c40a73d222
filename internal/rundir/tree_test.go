package rundir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"krig/internal/rundir"
)

// tree makes a directory of files.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mod")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func treeSum(t *testing.T, dir string) string {
	t.Helper()
	sum, err := rundir.TreeSum(dir)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestCopyTreeTakesNoState(t *testing.T) {
	dir := tree(t, map[string]string{
		"main.tf": "a", "sub/x.tf": "b", "run.sh": "c", ".terraform.lock.hcl": "locks",
		"terraform.tfstate": "secret", "terraform.tfstate.backup": "secret", ".terraform.tfstate.lock.info": "x",
		".terraform/providers/p": "x", "terraform.tfstate.d/w/terraform.tfstate": "secret", ".git/HEAD": "x",
	})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("main.tf", filepath.Join(dir, "link.tf")); err != nil {
		t.Fatal(err)
	}
	run, err := rundir.Create(t.TempDir(), "t", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.CopyTree(dir); err != nil {
		t.Fatal(err)
	}
	to := run.TreeCopy(dir)
	var got []string
	for _, pattern := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(to, pattern))
		for _, f := range found {
			got = append(got, strings.TrimPrefix(f, to+"/"))
		}
	}
	if want := ".terraform.lock.hcl link.tf main.tf run.sh sub sub/x.tf"; strings.Join(got, " ") != want {
		t.Errorf("the copy has %q", got)
	}
	if treeSum(t, to) != treeSum(t, dir) {
		t.Error("the copy has another sum")
	}
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run.CopyTree(dir); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(to, "main.tf")); string(text) != "a" {
		t.Errorf("the copy changed under the run: %q", text)
	}
}

func TestTreeSumSees(t *testing.T) {
	base := map[string]string{"a.tf": "x", "b.tf": "y"}
	dir := tree(t, base)
	first := treeSum(t, dir)
	if again := treeSum(t, tree(t, base)); again != first {
		t.Error("the same files give another sum")
	}
	for _, step := range []struct {
		name   string
		change func() error
	}{
		{"a text", func() error { return os.WriteFile(filepath.Join(dir, "a.tf"), []byte("z"), 0o644) }},
		{"a file more", func() error { return os.WriteFile(filepath.Join(dir, "c.tf"), nil, 0o644) }},
		{"a mode", func() error { return os.Chmod(filepath.Join(dir, "b.tf"), 0o755) }},
		{"a name", func() error { return os.Rename(filepath.Join(dir, "c.tf"), filepath.Join(dir, "d.tf")) }},
	} {
		before := treeSum(t, dir)
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if treeSum(t, dir) == before {
			t.Errorf("%s changes nothing", step.name)
		}
	}
	before := treeSum(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "terraform.tfstate"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if treeSum(t, dir) != before {
		t.Error("a state changes the sum")
	}
}

func TestTreeRefuses(t *testing.T) {
	dir := tree(t, map[string]string{"a.tf": "x"})
	if err := os.Symlink("/etc", filepath.Join(dir, "etc")); err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.TreeSum(dir); err == nil || !strings.Contains(err.Error(), "neither a file nor a directory of its own") {
		t.Errorf("a link to a directory: %v", err)
	}
	big := tree(t, map[string]string{"a.tf": "x"})
	if err := os.Truncate(filepath.Join(big, "a.tf"), 65<<20); err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.TreeSum(big); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("a large directory: %v", err)
	}
}
