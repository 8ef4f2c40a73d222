package remote

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// oddTree makes files with names and contents that copying easily gets wrong.
func oddTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{
		"plain":                                  "x",
		"empty":                                  "",
		"a b/c'd\"e":                             "spaces and quotes",
		"-n":                                     "looks like an option",
		"line\nend":                              "a line end",
		`back\slash`:                             "a backslash",
		"$HOME;rm *":                             "a shell's delight",
		"ünïcode/日本":                             "utf-8",
		"bin/big":                                strings.Repeat("0123456789abcdef", 1<<16),
		"deep/" + strings.Repeat("d/", 20) + "f": "deep",
	}
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("plain", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	files["link"] = "x"
	if err := os.Chmod(filepath.Join(dir, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	return files
}

func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPutDirectory(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		from, to := t.TempDir(), filepath.Join(t.TempDir(), "on the", "way")
		want := oddTree(t, from)
		ctx := limited(t, 60*time.Second)
		if err := c.Put(ctx, from, to); err != nil {
			t.Fatal(err)
		}
		got := readTree(t, to)
		if len(got) != len(want) {
			t.Errorf("%d files arrived, want %d", len(got), len(want))
		}
		for name, content := range want {
			if got[name] != content {
				t.Errorf("%q: %d bytes arrived, want %d", name, len(got[name]), len(content))
			}
		}
		if info, _ := os.Stat(filepath.Join(to, "plain")); info.Mode() != 0o755 {
			t.Errorf("mode %v", info.Mode())
		}
	})
}

func TestPutLeavesEqualFilesAlone(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		from, to := t.TempDir(), t.TempDir()
		oddTree(t, from)
		ctx := limited(t, 60*time.Second)
		if err := c.Put(ctx, from, to); err != nil {
			t.Fatal(err)
		}
		old := time.Unix(1e9, 0)
		for name := range readTree(t, to) {
			if err := os.Chtimes(filepath.Join(to, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
		// One changes its content but not its size, one only its mode.
		if err := os.WriteFile(filepath.Join(from, "plain"), []byte("y"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(from, "empty"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Put(ctx, from, to); err != nil {
			t.Fatal(err)
		}
		for name := range readTree(t, to) {
			info, err := os.Stat(filepath.Join(to, name))
			if err != nil {
				t.Fatal(err)
			}
			changed := name == "plain" || name == "link"
			if same := info.ModTime().Equal(old); same == changed {
				t.Errorf("%q: written anew: %t, want %t", name, !same, changed)
			}
			if name == "empty" && info.Mode() != 0o600 {
				t.Errorf("mode of %s is %v", name, info.Mode())
			}
		}
	})
}

func TestPutBytesAndGet(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		ctx := limited(t, 60*time.Second)
		dir := t.TempDir()
		for i, size := range []int{0, 1, 32 << 10, 5<<20 + 7} {
			data := bytes.Repeat([]byte{byte(i), 'x', '\n'}, size/3+1)[:size]
			there, here := filepath.Join(dir, fmt.Sprint("there ", i)), filepath.Join(dir, "here", fmt.Sprint(i))
			if err := c.PutBytes(ctx, data, there, 0o600); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(there); err != nil || info.Mode() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
			if err := c.Get(ctx, there, here); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(here); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes came back as %d, %v", size, len(got), err)
			}
		}
	})
}
