package remote

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
	"time"
)

// badLink is a host whose disk changes what is written to it.
type badLink struct{ *localLink }

func (badLink) files(context.Context) (store, error) { return badStore{}, nil }

type badStore struct{ localStore }

func (s badStore) create(path string, mode fs.FileMode, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	return s.localStore.create(path, mode, bytes.NewReader(data))
}

func (s badStore) fetch(path string, size int64, w io.Writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	data[len(data)/2] ^= 1
	_, err = w.Write(data)
	return err
}

func TestChecksumsAreCompared(t *testing.T) {
	c := newConn("b1", true, badLink{newLocalLink()})
	defer c.Close()
	dir, here := t.TempDir(), t.TempDir()
	err := c.PutBytes(limited(t, 20*time.Second), []byte("0123456789"), dir+"/x", 0o600)
	if err == nil || !strings.Contains(err.Error(), "/x: arrived with SHA-256 ") {
		t.Errorf("got %v", err)
	}
	noTraces(t, dir)
	if err := os.WriteFile(dir+"/x", []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	err = c.Get(limited(t, 20*time.Second), dir+"/x", here+"/x")
	if err == nil || !strings.Contains(err.Error(), "it changed while it was copied") {
		t.Errorf("got %v", err)
	}
	noTraces(t, here)
}

func TestParseSums(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	got, err := parseSums(sum + "  /a b\n" + `\` + sum + `  /line\nend\\` + "\n" + sum + "  -n\n")
	want := map[string]string{"/a b": sum, "/line\nend\\": sum, "-n": sum}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := parseSums("sha256sum: what?\n"); err == nil || err.Error() != `sha256sum printed "sha256sum: what?"` {
		t.Errorf("got %v", err)
	}
}

func FuzzParseSums(f *testing.F) {
	f.Add(strings.Repeat("0a", 32) + "  /a b\n")
	f.Add(`\` + strings.Repeat("0a", 32) + `  /line\nend\\` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		sums, err := parseSums(text)
		for _, sum := range sums {
			if err == nil && len(sum) != 64 {
				t.Errorf("%q gave %q", text, sum)
			}
		}
	})
}
