package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"krig/infra/child"
)

// lxcfsFiles are the files of /proc that lxcfs answers for a host. diskstats
// stays the kernel's: lxcfs would not count buffered writes.
func lxcfsFiles() []string {
	return []string{"stat", "meminfo", "loadavg", "uptime", "cpuinfo", "swaps"}
}

// startLxcfs gives hosts processor and memory figures of their own. Where
// lxcfs cannot be had the lab does without.
func (l *Lab) startLxcfs(ctx context.Context) error {
	mount := filepath.Join(l.Dir, "lxcfs")
	if answers(mount) {
		l.Lxcfs = mount
		return nil
	}
	program, err := exec.LookPath("lxcfs")
	if err != nil {
		return nil
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return nil
	}
	err = l.record(KindLxcfs, mount, func() error { return l.launchLxcfs(ctx, program, mount) })
	if err != nil {
		l.run.Report(event("", "lxcfs does not start (%v): hosts show this machine's figures, their cgroups' are used", err))
		return l.undo(KindLxcfs, mount, func() error { return endLxcfs(ctx, mount) })
	}
	l.Lxcfs = mount
	return nil
}

// launchLxcfs starts it in a session of its own, to outlive krig with the
// hosts of a kept rig, and waits until it answers.
func (l *Lab) launchLxcfs(ctx context.Context, program, mount string) error {
	if err := os.MkdirAll(mount, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(l.Dir, "lxcfs.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, "--foreground", "--enable-loadavg", "--pidfile", filepath.Join(l.Dir, "lxcfs.pid"), mount)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // collects it, should it end before krig
	limit := time.After(10 * time.Second)
	for !answers(mount) {
		select {
		case err := <-ended:
			return errors.Join(errors.New("it ended"), err)
		case <-limit:
			return errors.New("no answer within 10 s")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

func answers(mount string) bool {
	data, err := os.ReadFile(filepath.Join(mount, "proc", "uptime"))
	return err == nil && len(data) > 0
}

// lxcfsFlags are podman's arguments that show a host lxcfs's figures.
func lxcfsFlags(mount string) []string {
	if mount == "" {
		return nil
	}
	var out []string
	for _, f := range lxcfsFiles() {
		out = append(out, "--volume", filepath.Join(mount, "proc", f)+":/proc/"+f+":ro")
	}
	return out
}

// endLxcfs unmounts one and ends its process. It has nothing to save.
func endLxcfs(ctx context.Context, mount string) error {
	if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmounting lxcfs: %w", err)
	}
	own := func(argv []string) bool { return filepath.Base(argv[0]) == "lxcfs" && slices.Contains(argv, mount) }
	for _, p := range child.Processes(own) {
		if err := child.Signal(ctx, p.Owner, syscall.SIGKILL); err != nil {
			return fmt.Errorf("ending lxcfs: %w", err)
		}
	}
	return tidyLxcfs()
}

// tidyLxcfs removes the empty folders that the last lxcfs leaves in /run.
func tidyLxcfs() error {
	if len(child.Processes(func(argv []string) bool { return filepath.Base(argv[0]) == "lxcfs" })) > 0 {
		return nil
	}
	for _, d := range []string{"/run/lxcfs/controllers", "/run/lxcfs/root", "/run/lxcfs"} {
		err := os.Remove(d)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
			return err
		}
	}
	return nil
}

// lxcfsMounts lists where one of krig's lxcfs is mounted or runs.
func lxcfsMounts() ([]string, error) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []string
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		fields := strings.Fields(sc.Text())
		if len(fields) > 2 && fields[2] == "fuse.lxcfs" {
			out = append(out, unescapeMount(fields[1]))
		}
	}
	for _, p := range child.Processes(func(argv []string) bool { return filepath.Base(argv[0]) == "lxcfs" }) {
		out = append(out, p.Argv[len(p.Argv)-1])
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(m string) bool {
		_, ok := folderLabel(filepath.Dir(m))
		return filepath.Base(m) != "lxcfs" || !ok
	}), sc.Err()
}

// unescapeMount undoes the kernel's octal escapes in the table of mounts.
func unescapeMount(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
