package rundir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// treeMost bounds the bytes of a directory that is copied into a run.
const treeMost = 64 << 20

// TreeSum is a SHA-256 of the files in a directory, their names and whether they
// can be executed, in hexadecimal. What [Run.CopyTree] leaves out does not count.
func TreeSum(dir string) (string, error) {
	all := sha256.New()
	err := walkTree(dir, func(name, path string, info fs.FileInfo) error {
		sum, err := FileSum(path)
		fmt.Fprintf(all, "%q %v %s\n", name, info.Mode()&0o100 != 0, sum)
		return err
	})
	return hex.EncodeToString(all.Sum(nil)), err
}

// TreeCopy is where [Run.CopyTree] puts the copy of a directory.
func (r *Run) TreeCopy(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	const digits = 4 // two directories of one name are told apart
	return r.Path("inputs", hex.EncodeToString(sum[:digits])+"-"+filepath.Base(dir))
}

// CopyTree copies a directory of Terraform files into the run's inputs, once:
// a copy that is there is kept. Left out are what belongs to other runs of
// the tool, above all a state, and what no tool reads: .terraform,
// terraform.tfstate.d, .git, and files of states and of their locks. A link
// to a file is copied as the file.
func (r *Run) CopyTree(dir string) error {
	to := r.TreeCopy(dir)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	half, err := os.MkdirTemp(filepath.Dir(to), ".new-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(half)
	err = walkTree(dir, func(name, path string, info fs.FileInfo) error {
		return copyTo(filepath.Join(half, name), path, info)
	})
	if err == nil {
		err = os.Rename(half, to)
	}
	if err != nil {
		return fmt.Errorf("copying %s: %w", dir, err)
	}
	return syncDir(filepath.Dir(to))
}

func copyTo(to, path string, info fs.FileInfo) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		return err
	}
	const own = 0o700 // modules may hold what others must not read
	return os.WriteFile(to, data, info.Mode().Perm()&own)
}

// walkTree calls each for every file of a directory that counts, in the order of names.
func walkTree(dir string, each func(name, path string, info fs.FileInfo) error) error {
	var total int64
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != dir && leftOut(e.Name()):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return nil
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a directory of its own: a copy would not hold it", path)
		}
		if total += info.Size(); total > treeMost {
			return fmt.Errorf("%s holds more than %d MiB: every run takes a copy, move what is not Terraform's elsewhere", dir, treeMost>>20)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return each(name, path, info)
	})
}

func leftOut(name string) bool {
	return slices.Contains([]string{".terraform", "terraform.tfstate.d", ".git"}, name) ||
		strings.HasSuffix(name, ".tfstate") || strings.Contains(name, ".tfstate.")
}
