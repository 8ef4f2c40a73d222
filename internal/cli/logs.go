package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"krig/internal/rundir"
)

// logsCmd archives what a bug report needs.
func (a *app) logsCmd() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "logs RUN",
		GroupID: groupResult,
		Short:   "Archive what a bug report needs, without secrets",
		Long: `Write one .tar.gz of the run directory (what was asked, what was done, every
log and result) and the versions of everything. Keys and whatever else only its
owner may read stay out of it. The archive's name is printed.`,
		Args:              args(takes(1, 1)),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logs(cmd.Context(), args[0], file)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `FILE` instead of krig-logs-RUN.tar.gz")
	return cmd
}

func (a *app) logs(ctx context.Context, name, file string) (err error) {
	run, err := a.open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if file == "" {
		file = "krig-logs-" + run.ID + ".tar.gz"
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	hidden, err := archive(out, run, a.versions(ctx).text())
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	if len(hidden) > 0 {
		a.say("left out, as keys or as readable by their owner alone: %s", strings.Join(hidden, ", "))
	}
	_, err = fmt.Fprintln(a.Out, file)
	return err
}

// archive writes a run directory without its secrets, and the versions. It
// names the files that it left out.
func archive(w io.Writer, run *rundir.Run, versions string) (hidden []string, err error) {
	zipped := gzip.NewWriter(w)
	t := tar.NewWriter(zipped)
	err = addText(t, path.Join(run.ID, "versions.txt"), versions)
	if err == nil {
		err = filepath.WalkDir(run.Dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(run.Dir, file)
			if err == nil && d.IsDir() && filepath.ToSlash(rel) == stacks {
				hidden = append(hidden, rel)
				return filepath.SkipDir
			}
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			added, err := addFile(t, path.Join(run.ID, filepath.ToSlash(rel)), file)
			if err == nil && !added {
				hidden = append(hidden, rel)
			}
			return err
		})
	}
	return hidden, errors.Join(err, t.Close(), zipped.Close())
}

// stacks are the folders of stacks: states, plans and variables may hold any
// secret, at any place in them.
const stacks = "infra/terraform"

func addText(t *tar.Writer, name, text string) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := io.WriteString(t, text)
	return err
}

// addFile adds a file unless it is a secret. It adds as much as the file held
// when it was opened: a log may be growing.
func addFile(t *tar.Writer, name, file string) (added bool, err error) {
	in, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return false, err
	}
	hidden, err := secret(in, info, name)
	if err != nil || hidden {
		return false, err
	}
	header, err := tar.FileInfoHeader(info, "")
	if err != nil {
		return false, err
	}
	header.Name, header.Uname, header.Gname = name, "", ""
	if err := t.WriteHeader(header); err != nil {
		return false, err
	}
	_, err = io.CopyN(t, in, info.Size())
	return err == nil, err
}

// secret tells whether a file may leave this machine: one that others may not
// read, one named as a key, or one that holds a private key may not. What the
// load, the collectors and krig's own log wrote is judged without its mode,
// which is only that of the user's umask.
func secret(in io.ReadSeeker, info fs.FileInfo, name string) (bool, error) {
	_, inside, _ := strings.Cut(name, "/") // below the run's id
	top, _, _ := strings.Cut(inside, "/")
	written := slices.Contains([]string{"cells", "logs", "krig.log", "lock"}, top)
	if !written && info.Mode().Perm()&0o044 == 0 || strings.HasSuffix(info.Name(), ".key") || strings.HasSuffix(info.Name(), ".pem") {
		return true, nil
	}
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return false, err
	}
	return bytes.Contains(head[:n], []byte("PRIVATE KEY-----")), nil
}
