package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The v1 rules of a block device. They belong to the root group, where
// write-back is; a host's processes are moved there too (see [joinRoot]), so
// that one bucket holds all that reaches the disk.
const (
	ruleWrite     = "blkio.throttle.write_bps_device"
	ruleRead      = "blkio.throttle.read_bps_device"
	ruleWriteIOPS = "blkio.throttle.write_iops_device"
	ruleReadIOPS  = "blkio.throttle.read_iops_device"
)

// throttle slows a device to its disk's figures; 0 is not throttled. Each rule
// is written, so that none of an earlier user of the device's number remains.
func throttle(device string, d Disk) error {
	dir := controllerMount("blkio")
	if dir == "" {
		if d.slow() {
			return errors.New("throttling disks: this machine has no blkio controller")
		}
		return nil
	}
	number, err := deviceNumber(device)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range []struct {
		file  string
		value int64
	}{{ruleWrite, d.Write}, {ruleRead, d.Read}, {ruleWriteIOPS, int64(d.IOPS)}, {ruleReadIOPS, int64(d.IOPS)}} {
		if err := writeRule(filepath.Join(dir, r.file), number, r.value); err != nil && (r.value > 0 || throttled(number)) {
			errs = append(errs, fmt.Errorf("throttling %s: %w", device, err))
		}
	}
	return errors.Join(errs...)
}

// joinRoot moves a host's first process, and with it all later ones, into the
// root group of the v1 blkio controller. In a group of its own its direct and
// synced writes would escape the device's rule.
func joinRoot(pid int) error {
	dir := controllerMount("blkio")
	if dir == "" || Mode() == CgroupV2 {
		return nil
	}
	err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)+"\n"), 0)
	if err != nil {
		return fmt.Errorf("putting the host under its disk's rule: %w", err)
	}
	return nil
}

// writeRule sets one rule; 0 removes it.
func writeRule(path, number string, value int64) error {
	return os.WriteFile(path, []byte(number+" "+strconv.FormatInt(value, 10)+"\n"), 0)
}

// unthrottle removes a device's rules. A rule outlives the device it was made
// for and would slow the next user of the number.
func unthrottle(device string) error { return throttle(device, Disk{}) }

// throttled tells whether a device number has a rule.
func throttled(number string) bool {
	dir := controllerMount("blkio")
	if dir == "" {
		return false
	}
	for _, file := range []string{ruleWrite, ruleRead, ruleWriteIOPS, ruleReadIOPS} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil && hasRule(string(data), number) {
			return true
		}
	}
	return false
}

func hasRule(text, number string) bool {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == number {
			return true
		}
	}
	return false
}

// deviceNumber is a loop device's MAJ:MIN.
func deviceNumber(device string) (string, error) {
	data, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(device), "dev"))
	if err != nil {
		return "", fmt.Errorf("finding the number of %s: %w", device, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// throttleFlags are podman's arguments that slow a device under cgroup v2,
// where the container's own group counts write-back.
func throttleFlags(device string, d Disk) []string {
	var out []string
	for _, r := range []struct {
		flag  string
		value int64
	}{{"--device-write-bps", d.Write}, {"--device-read-bps", d.Read}, {"--device-write-iops", int64(d.IOPS)}, {"--device-read-iops", int64(d.IOPS)}} {
		if r.value > 0 {
			out = append(out, r.flag, device+":"+strconv.FormatInt(r.value, 10))
		}
	}
	return out
}
