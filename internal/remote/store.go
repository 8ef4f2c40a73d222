package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

// packetsAhead is how many packets of one file are on their way at a time.
const packetsAhead = 32

// sftpStore is a host's files over SSH.
type sftpStore struct {
	client  *sftp.Client
	session *ssh.Session
}

func (l *sshLink) files(ctx context.Context) (store, error) {
	s := &sftpStore{}
	var r io.Reader
	var w io.WriteCloser
	var err error
	s.session, _, err = l.open(ctx, func(session *ssh.Session) (err error) {
		if w, err = session.StdinPipe(); err != nil {
			return err
		}
		if r, err = session.StdoutPipe(); err != nil {
			return err
		}
		return session.RequestSubsystem("sftp")
	})
	if err != nil {
		return nil, fmt.Errorf("opening sftp (its sshd needs the subsystem): %w", err)
	}
	stop := context.AfterFunc(ctx, func() { s.session.Close() })
	s.client, err = sftp.NewClientPipe(r, w,
		sftp.UseConcurrentWrites(true), sftp.MaxConcurrentRequestsPerFile(packetsAhead))
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		s.session.Close()
		return nil, fmt.Errorf("opening sftp: %w", err)
	}
	return s, nil
}

func (s *sftpStore) stat(path string) (fs.FileInfo, error)     { return s.client.Stat(path) }
func (s *sftpStore) mkdirAll(path string) error                { return s.client.MkdirAll(path) }
func (s *sftpStore) chmod(path string, mode fs.FileMode) error { return s.client.Chmod(path, mode) }
func (s *sftpStore) rename(from, to string) error              { return s.client.PosixRename(from, to) }
func (s *sftpStore) remove(path string) error                  { return s.client.Remove(path) }

func (s *sftpStore) create(path string, mode fs.FileMode, r io.Reader) error {
	f, err := s.client.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(mode); err != nil { // before any content: it may be a secret
		return err
	}
	if _, err := f.ReadFromWithConcurrency(r, packetsAhead); err != nil {
		return err
	}
	return f.Close()
}

func (s *sftpStore) fetch(path string, size int64, w io.Writer) error {
	f, err := s.client.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lw := &limitWriter{w: w, left: size}
	if _, err := f.WriteTo(lw); err != nil && !errors.Is(err, errFull) {
		return err
	}
	return lw.whole()
}

func (s *sftpStore) close() error {
	err := s.client.Close()
	s.session.Close() // ended by the line above
	return err
}

// localStore is this machine's files.
type localStore struct{}

func (localStore) stat(path string) (fs.FileInfo, error)     { return os.Stat(path) }
func (localStore) mkdirAll(path string) error                { return os.MkdirAll(path, 0o755) }
func (localStore) chmod(path string, mode fs.FileMode) error { return os.Chmod(path, mode) }
func (localStore) rename(from, to string) error              { return os.Rename(from, to) }
func (localStore) remove(path string) error                  { return os.Remove(path) }
func (localStore) close() error                              { return nil }

func (localStore) create(path string, mode fs.FileMode, r io.Reader) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	return f.Close()
}

func (localStore) fetch(path string, size int64, w io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if n, err := io.Copy(w, io.LimitReader(f, size)); err != nil {
		return err
	} else if n < size {
		return errShort
	}
	return nil
}

var (
	errFull  = errors.New("everything that was asked for has been written")
	errShort = errors.New("it became shorter while it was copied")
)

// limitWriter takes the first bytes and then ends the copy.
type limitWriter struct {
	w    io.Writer
	left int64
}

func (l *limitWriter) Write(p []byte) (int, error) {
	n, err := l.w.Write(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if err == nil && n < len(p) {
		err = errFull
	}
	return n, err
}

func (l *limitWriter) whole() error {
	if l.left > 0 {
		return errShort
	}
	return nil
}
