package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// filesAtOnce is how many files of one Put travel at a time.
const filesAtOnce = 4

// store is a host's files.
type store interface {
	// stat follows links; a path with nothing there gives fs.ErrNotExist.
	stat(path string) (fs.FileInfo, error)
	mkdirAll(path string) error
	// create makes a new file and fills it from r.
	create(path string, mode fs.FileMode, r io.Reader) error
	// fetch writes the first size bytes of a file to w.
	fetch(path string, size int64, w io.Writer) error
	chmod(path string, mode fs.FileMode) error
	rename(from, to string) error // replaces what is there
	remove(path string) error
	close() error
}

// parcel is one file on its way.
type parcel struct {
	to   string // on the host
	temp string // its name until it is checked
	size int64
	mode fs.FileMode
	open func() (io.ReadCloser, error)
	sum  string // of what was read, hexadecimal SHA-256
}

// Put copies a local file or directory to the host and checks it; what is
// there already with the same content is left alone. Directories on the way are made.
// Permissions are copied, links are followed, and nothing else that a directory on the host holds is
// removed. A file appears under its name only when it is complete and its
// checksum is right. The path is absolute, and the files belong to the login.
func (c *Conn) Put(ctx context.Context, local, path string) error {
	parcels, err := gather(local, path)
	if err == nil {
		err = c.put(ctx, parcels)
	}
	if err != nil {
		return c.errorf("putting "+path, err)
	}
	return nil
}

// PutBytes writes a small file on the host, as [Conn.Put] does, with exactly this mode.
func (c *Conn) PutBytes(ctx context.Context, data []byte, path string, mode uint32) error {
	p := &parcel{to: path, size: int64(len(data)), mode: fs.FileMode(mode)}
	p.open = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	if err := c.put(ctx, []*parcel{p}); err != nil {
		return c.errorf("putting "+path, err)
	}
	return nil
}

// gather lists what is to be sent.
func gather(local, to string) ([]*parcel, error) {
	root, err := filepath.EvalSymlinks(local) // a walk would not follow the first
	if err != nil {
		return nil, err
	}
	var out []*parcel
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a directory", name)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		out = append(out, &parcel{
			to: path.Join(to, filepath.ToSlash(rel)), size: info.Size(), mode: info.Mode().Perm(),
			open: func() (io.ReadCloser, error) { return os.Open(name) },
		})
		return nil
	})
	return out, err
}

func (c *Conn) put(ctx context.Context, parcels []*parcel) error {
	for _, p := range parcels {
		if !path.IsAbs(p.to) || strings.ContainsRune(p.to, 0) {
			return fmt.Errorf("%q is not an absolute path", p.to)
		}
	}
	return c.withStore(ctx, func(ctx context.Context, s store) error {
		missing, err := c.missing(ctx, s, parcels)
		if err != nil || len(missing) == 0 {
			return err
		}
		return c.send(ctx, s, missing)
	})
}

// withStore opens the host's files. It holds two sessions at once, one for
// the files and one for checksums, so that callers cannot wait for each other.
func (c *Conn) withStore(ctx context.Context, do func(context.Context, store) error) error {
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := acquire(ctx, c.slots, 2); err != nil {
		return err
	}
	defer c.slots.Release(2)
	s, err := c.link.files(ctx)
	if err != nil {
		return err
	}
	defer s.close() // everything has been checked by then
	err = do(ctx, s)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	return err
}

// missing keeps the parcels whose content is not on the host yet.
func (c *Conn) missing(ctx context.Context, s store, parcels []*parcel) ([]*parcel, error) {
	same := make([]bool, len(parcels)) // in size, as yet
	modes := make([]fs.FileMode, len(parcels))
	err := atOnce(ctx, parcels, func(i int, p *parcel) error {
		info, err := s.stat(p.to)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.to, err)
		}
		if info.IsDir() {
			return fmt.Errorf("%s is a directory", p.to)
		}
		same[i] = info.Mode().IsRegular() && info.Size() == p.size
		modes[i] = info.Mode().Perm()
		return nil
	})
	if err != nil {
		return nil, err
	}
	var candidates []string
	for i, p := range parcels {
		if same[i] {
			candidates = append(candidates, p.to)
		}
	}
	sums, err := c.sums(ctx, candidates)
	if err != nil {
		return nil, err
	}
	err = atOnce(ctx, parcels, func(i int, p *parcel) error {
		if !same[i] {
			return nil
		}
		if err := p.digest(ctx); err != nil {
			return err
		}
		same[i] = sums[p.to] == p.sum
		if same[i] && modes[i] != p.mode {
			return s.chmod(p.to, p.mode)
		}
		return nil
	})
	var missing []*parcel
	for i, p := range parcels {
		if !same[i] {
			missing = append(missing, p)
		}
	}
	return missing, err
}

// send copies parcels under other names, checks them, and renames them.
func (c *Conn) send(ctx context.Context, s store, parcels []*parcel) (err error) {
	if err := makeDirs(s, parcels); err != nil {
		return err
	}
	temps := make([]string, len(parcels))
	for i, p := range parcels {
		p.temp = path.Join(path.Dir(p.to), ".krig-new-"+rand.Text())
		temps[i] = p.temp
	}
	defer func() {
		if err != nil {
			for _, t := range temps {
				_ = s.remove(t) // those that were renamed are gone, others may never have been made
			}
		}
	}()
	err = atOnce(ctx, parcels, func(_ int, p *parcel) error {
		if err := p.copyTo(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", p.to, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	sums, err := c.sums(ctx, temps)
	if err != nil {
		return err
	}
	for _, p := range parcels {
		if got := sums[p.temp]; got != p.sum {
			return fmt.Errorf("%s: arrived with SHA-256 %s, not %s", p.to, got, p.sum)
		}
	}
	return atOnce(ctx, parcels, func(_ int, p *parcel) error {
		if err := s.rename(p.temp, p.to); err != nil {
			return fmt.Errorf("%s: %w", p.to, err)
		}
		return nil
	})
}

func makeDirs(s store, parcels []*parcel) error {
	made := map[string]bool{}
	for _, p := range parcels {
		dir := path.Dir(p.to)
		if made[dir] {
			continue
		}
		if err := s.mkdirAll(dir); err != nil {
			return fmt.Errorf("making %s: %w", dir, err)
		}
		made[dir] = true
	}
	return nil
}

// copyTo sends a parcel to its temporary name and remembers what was sent.
func (p *parcel) copyTo(ctx context.Context, s store) error {
	in, err := p.open()
	if err != nil {
		return err
	}
	defer in.Close()
	hash := sha256.New()
	if err := s.create(p.temp, p.mode, io.TeeReader(whileAlive(ctx, in.Read), hash)); err != nil {
		return err
	}
	p.sum = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// digest reads a parcel's content for its checksum alone.
func (p *parcel) digest(ctx context.Context) error {
	in, err := p.open()
	if err != nil {
		return err
	}
	defer in.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, whileAlive(ctx, in.Read)); err != nil {
		return err
	}
	p.sum = hex.EncodeToString(hash.Sum(nil))
	return nil
}

// atOnce works on a few parcels at a time.
func atOnce(ctx context.Context, parcels []*parcel, do func(int, *parcel) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(filesAtOnce)
	for i, p := range parcels {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return do(i, p)
		})
	}
	return g.Wait()
}

// sums are the SHA-256 of files on the host. One that is gone has none.
func (c *Conn) sums(ctx context.Context, paths []string) (map[string]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	err := c.run(ctx, Cmd{
		Argv:   []string{"xargs", "-0", "sha256sum", "--"},
		Stdin:  strings.NewReader(strings.Join(paths, "\x00")),
		Stdout: &out,
	})
	if err != nil {
		return nil, fmt.Errorf("checking: %w", err)
	}
	return parseSums(out.String())
}

// parseSums reads sha256sum's lines. One that begins with a backslash has its
// path's backslashes and line ends escaped.
func parseSums(text string) (map[string]string, error) {
	const digits = 2 * sha256.Size
	sums := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		name, escaped := strings.CutPrefix(line, `\`)
		if len(name) < digits+3 || name[digits] != ' ' {
			return nil, fmt.Errorf("sha256sum printed %q", line)
		}
		sum, name := name[:digits], name[digits+2:]
		if escaped {
			name = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r").Replace(name)
		}
		sums[name] = sum
	}
	return sums, nil
}

// ioFunc is a Reader or a Writer made of one function.
type ioFunc func([]byte) (int, error)

func (f ioFunc) Read(p []byte) (int, error)  { return f(p) }
func (f ioFunc) Write(p []byte) (int, error) { return f(p) }

// whileAlive does io until ctx ends.
func whileAlive(ctx context.Context, io func([]byte) (int, error)) ioFunc {
	return func(p []byte) (int, error) {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return io(p)
	}
}
