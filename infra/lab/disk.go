package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Disk is the data disk that a host shall have. Rates are bytes a second,
// IOPS operations a second in each direction; 0 is not throttled.
type Disk struct {
	Size    int64  `json:"size"` // bytes; 0 is no disk
	Profile string `json:"profile"`
	Write   int64  `json:"write"`
	Read    int64  `json:"read"`
	IOPS    int    `json:"iops"`
}

func (d Disk) slow() bool { return d.Write > 0 || d.Read > 0 || d.IOPS > 0 }

// FullError says that the lab's data folder has no room for disks.
type FullError struct {
	Dir          string
	Needed, Free int64 // bytes
}

func (e *FullError) Error() string {
	return fmt.Sprintf("data folder full: %s has %s free, the disks need %s: make room, or name another folder in KRIG_LAB_DIR",
		e.Dir, mib(e.Free), mib(e.Needed))
}

func mib(n int64) string { return strconv.FormatInt(n>>20, 10) + " MiB" }

// Room returns a *[FullError] when so many bytes of disks do not fit into the
// data folder, or into the nearest folder above it that is there.
func Room(needed int64) error {
	dir, err := Dir()
	if err != nil || needed == 0 {
		return err
	}
	return room(dir, needed)
}

func room(dir string, needed int64) error {
	at := dir
	var st unix.Statfs_t
	err := unix.Statfs(at, &st)
	for errors.Is(err, unix.ENOENT) && at != "/" {
		at = filepath.Dir(at)
		err = unix.Statfs(at, &st)
	}
	if err != nil {
		return fmt.Errorf("measuring the free space of %s: %w", dir, err)
	}
	free := int64(st.Bavail) * st.Bsize
	if needed > free {
		return &FullError{Dir: dir, Needed: needed, Free: free}
	}
	return nil
}

// allocate makes a backing file with all its blocks, so that a disk can never
// run out of room that it was promised.
func allocate(path string, size int64) error {
	if err := room(filepath.Dir(path), size); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("allocating a disk: %w", err)
	}
	err = retryInterrupted(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, size) })
	if errors.Is(err, unix.ENOSPC) {
		err = errors.Join(room(filepath.Dir(path), size), err)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("allocating %s: %w", path, err)
	}
	return nil
}

func retryInterrupted(do func() error) error {
	for {
		if err := do(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// attach makes a loop device of a backing file, with direct I/O: the machine's
// page cache must not hold the disk a second time. A file system on sectors of
// 4096 bytes takes direct I/O in no smaller pieces.
func attach(path string) (device string, err error) {
	for _, sector := range []uint32{0, 4096} {
		device, err = attachFree(path, sector)
		if err != nil {
			return "", fmt.Errorf("attaching %s: %w", path, err)
		}
		if blockFile(device, "loop/dio") == "1" {
			return device, nil
		}
		if err := detach(device); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("attaching %s: its file system does not take direct I/O: name a folder on another in KRIG_LAB_DIR", path)
}

// attachFree attaches a file to a free device. It is one system call, so that
// no moment leaves a device without its file.
func attachFree(path string, sector uint32) (string, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer control.Close()
	for range 64 { // another process may take the free device first
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return "", fmt.Errorf("finding a free loop device: %w", err)
		}
		device := "/dev/loop" + strconv.Itoa(n)
		err = configure(device, file, sector)
		if !errors.Is(err, unix.EBUSY) {
			return device, err
		}
	}
	return "", errors.New("no loop device stays free")
}

func configure(device string, file *os.File, sector uint32) error {
	dev, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer dev.Close()
	config := unix.LoopConfig{Fd: uint32(file.Fd()), Size: sector}
	config.Info.Flags = unix.LO_FLAGS_DIRECT_IO
	copy(config.Info.File_name[:len(config.Info.File_name)-1], file.Name())
	return unix.IoctlLoopConfigure(int(dev.Fd()), &config)
}

// blockFile is one of the kernel's answers about a device; "" when there is none.
func blockFile(device, file string) string {
	data, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// detach frees a loop device. When something still has it open the kernel
// frees it with the last use.
func detach(device string) error {
	dev, err := os.OpenFile(device, os.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("detaching %s: %w", device, err)
	}
	defer dev.Close()
	err = unix.IoctlSetInt(int(dev.Fd()), unix.LOOP_CLR_FD, 0)
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("detaching %s: %w", device, err)
	}
	return nil
}

// loops lists attached loop devices with their backing files. A file that has
// been deleted meanwhile keeps its path.
func loops() (map[string]string, error) {
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(paths))
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil { // detached in between
			continue
		}
		name := filepath.Base(filepath.Dir(filepath.Dir(p)))
		out["/dev/"+name] = strings.TrimSuffix(strings.TrimSpace(string(data)), " (deleted)")
	}
	return out, nil
}

// loopOf is the device of a backing file; "" when it has none.
func loopOf(path string) (string, error) {
	all, err := loops()
	if err != nil {
		return "", err
	}
	for device, file := range all {
		if file == path {
			return device, nil
		}
	}
	return "", nil
}
