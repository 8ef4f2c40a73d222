package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Get copies a file from the host and checks it: as much of it as there was at
// the beginning, so that a log may grow meanwhile. The local file appears, synced to disk, only
// when it is complete; directories on the way are made.
func (c *Conn) Get(ctx context.Context, path, local string) error {
	err := c.withStore(ctx, func(ctx context.Context, s store) error { return c.get(ctx, s, path, local) })
	if err != nil {
		return c.errorf("getting "+path, err)
	}
	return nil
}

func (c *Conn) get(ctx context.Context, s store, path, local string) error {
	info, err := s.stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a file")
	}
	if err := os.MkdirAll(filepath.Dir(local), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(local), ".krig-new-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // gone when it was renamed
	defer temp.Close()
	hash := sha256.New()
	if err := s.fetch(path, info.Size(), whileAlive(ctx, io.MultiWriter(temp, hash).Write)); err != nil {
		return err
	}
	if err := c.checkHead(ctx, path, info.Size(), hex.EncodeToString(hash.Sum(nil))); err != nil {
		return err
	}
	return settle(temp, info.Mode().Perm(), local)
}

// checkHead compares the checksum of a file's first bytes.
func (c *Conn) checkHead(ctx context.Context, path string, size int64, want string) error {
	var out bytes.Buffer
	err := c.run(ctx, Cmd{
		Argv:   []string{"sh", "-c", `head -c "$1" <"$2" | sha256sum`, "sh", fmt.Sprint(size), path},
		Stdout: &out,
	})
	if err != nil {
		return fmt.Errorf("checking: %w", err)
	}
	if got, _, _ := strings.Cut(out.String(), " "); got != want {
		return fmt.Errorf("it changed while it was copied (SHA-256 %s there, %s here)", got, want)
	}
	return nil
}

// settle gives a complete file its name, on disk before that is seen.
func settle(temp *os.File, mode fs.FileMode, local string) error {
	if err := temp.Chmod(mode); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), local); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(local))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
