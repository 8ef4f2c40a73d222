package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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

// noTraces tells that a directory holds these files and no unfinished ones.
func noTraces(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

func TestPutFails(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		ctx := limited(t, 30*time.Second)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		fifo := filepath.Join(t.TempDir(), "fifo")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, tc := range []struct{ local, path, want string }{
			{"/nonexistent", dir + "/x", "putting " + dir + "/x: lstat /nonexistent: no such file or directory"},
			{dir + "/file", "relative", `putting relative: "relative" is not an absolute path`},
			{dir + "/file", dir, "putting " + dir + ": " + dir + " is a directory"},
			{dir + "/file", dir + "/file/x", "putting " + dir + "/file/x: "},
			{fifo, dir + "/x", "putting " + dir + "/x: " + fifo + " is neither a file nor a directory"},
		} {
			if err := c.Put(ctx, tc.local, tc.path); err == nil || !strings.HasPrefix(err.Error(), c.Host()+": "+tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		}
		noTraces(t, dir, "file")
	})
}

func TestPutInterrupted(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		from, to := filepath.Join(t.TempDir(), "big"), t.TempDir()
		f, err := os.Create(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(8<<30), f.Close()); err != nil { // sparse
			t.Fatal(err)
		}
		if err := c.PutBytes(limited(t, 20*time.Second), []byte("old"), to+"/x", 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			defer cancel(errFail)
			for range 1000 { // until it has begun
				if entries, _ := os.ReadDir(to); len(entries) > 1 {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		if err := c.Put(ctx, from, to+"/x"); !errors.Is(err, errFail) {
			t.Errorf("got %v", err)
		}
		noTraces(t, to, "x")
		if data, err := os.ReadFile(to + "/x"); err != nil || string(data) != "old" {
			t.Errorf("what was there is now %q, %v", data, err)
		}
		here := filepath.Join(t.TempDir(), "here")
		ctx, cancelGet := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancelGet()
		if err := c.Get(ctx, from, here); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		noTraces(t, filepath.Dir(here))
	})
}

func TestGetFails(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		dir, here := t.TempDir(), t.TempDir()
		if err := c.Get(limited(t, 20*time.Second), dir+"/none", here+"/x"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		if err := c.Get(limited(t, 20*time.Second), dir, here+"/x"); err == nil || err.Error() != c.Host()+": getting "+dir+": it is not a file" {
			t.Errorf("got %v", err)
		}
		noTraces(t, here)
	})
}

// A log may grow while it is fetched: what there was at the beginning comes.
func TestGetGrowingFile(t *testing.T) {
	overBoth(t, func(t *testing.T, c *Conn) {
		dir := t.TempDir()
		log, err := os.Create(dir + "/log")
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		line := bytes.Repeat([]byte("a line of a log\n"), 1000)
		for range 200 {
			log.Write(line)
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					log.Write(line)
				}
			}
		})
		for range 3 {
			if err := c.Get(limited(t, 30*time.Second), dir+"/log", dir+"/here"); err != nil {
				t.Error(err)
			}
		}
		close(stop)
		wg.Wait()
		got, err := os.ReadFile(dir + "/here")
		whole, _ := os.ReadFile(dir + "/log")
		if err != nil || len(got) < 200*len(line) || !bytes.HasPrefix(whole, got) {
			t.Errorf("%d of %d bytes, %v", len(got), len(whole), err)
		}
	})
}

func TestHostWithoutSFTP(t *testing.T) {
	s := startTestServer(t)
	c := dialHost(t, s.host, s.dir)
	err := c.PutBytes(limited(t, 20*time.Second), nil, "/tmp/krig-never", 0o600)
	if err == nil || !strings.HasPrefix(err.Error(), "b1: putting /tmp/krig-never: opening sftp (its sshd needs the subsystem): ") {
		t.Errorf("got %v", err)
	}
}

// BenchmarkPut puts what is like a Kafka distribution, 91 files of 54 MB, on
// seven hosts side by side, and then again.
func BenchmarkPut(b *testing.B) {
	libs := b.TempDir()
	random := rand.NewChaCha8([32]byte{})
	for i := range 91 {
		data := make([]byte, 600_000)
		random.Read(data)
		if err := os.WriteFile(filepath.Join(libs, fmt.Sprintf("%d.jar", i)), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	s := startSSHD(b)
	f := NewFleet(s.dir)
	defer f.Close()
	var names []string
	for i := range 7 {
		h := s.host
		h.Name = fmt.Sprint("b", i)
		names = append(names, h.Name)
		f.Add(h)
	}
	for b.Loop() {
		dir := b.TempDir()
		for _, round := range []string{"first", "again"} {
			begun := time.Now()
			err := f.Each(b.Context(), names, func(ctx context.Context, name string, c *Conn) error {
				return c.Put(ctx, libs, filepath.Join(dir, name))
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(time.Since(begun).Seconds(), "s/"+round)
		}
	}
}
