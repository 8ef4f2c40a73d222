package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"krig/infra/child"
)

// Needs is what the hosts of a rig ask of this machine.
type Needs struct {
	Disks    bool
	Throttle bool
	CPUs     bool // a limit of processors
	Memory   bool // a limit of memory
	Shape    bool
}

func programs() []child.Program {
	return []child.Program{
		{Name: "podman", Pkg: "podman"},
		{Name: Runtime(), Pkg: Runtime()},
		{Name: "netavark", Paths: []string{"/usr/lib/podman/netavark", "/usr/libexec/podman/netavark"}, Pkg: "netavark"},
		{Name: "iptables", Pkg: "iptables"},
		{Name: "ip", Pkg: "iproute2"},
		{Name: "sshd", Paths: []string{"/usr/sbin/sshd"}, Pkg: "openssh-server"},
	}
}

// Lacks tells what this machine lacks for any lab host, with what the needs
// add. It only reads.
func Lacks(n Needs) []child.Lack {
	out := child.Missing(programs()...)
	if n.Shape {
		out = append(out, child.Missing(child.Program{Name: "tc", Pkg: "iproute2"}, child.Program{Name: "nsenter", Pkg: "util-linux"})...)
	}
	if os.Geteuid() != 0 {
		out = append(out, child.Lack{What: "krig does not run as root, which the lab's containers, links and disks need", Remedy: "run it with sudo"})
	}
	if n.Disks && !exists("/dev/loop-control") {
		out = append(out, child.Lack{What: "there is no /dev/loop-control, which the lab's disks need", Remedy: "modprobe loop"})
	}
	if n.Throttle {
		out = append(out, lackIf(!canThrottle(), "control groups ("+string(Mode())+") cannot throttle disks here",
			"leave disk.profile, write, read and iops out, or use a kernel with CONFIG_BLK_DEV_THROTTLING")...)
	}
	if n.CPUs {
		out = append(out, lackIf(!canLimit("cpu", "cpu.cfs_quota_us"), "control groups ("+string(Mode())+") cannot limit processors here",
			"leave cpus out, or use a kernel with CONFIG_CFS_BANDWIDTH")...)
	}
	if n.Memory {
		out = append(out, lackIf(!canLimit("memory", "memory.limit_in_bytes"), "control groups ("+string(Mode())+") cannot limit memory here",
			"enable the memory controller (kernel parameter cgroup_enable=memory)")...)
	}
	return out
}

func lackIf(missing bool, what, remedy string) []child.Lack {
	if !missing {
		return nil
	}
	return []child.Lack{{What: what, Remedy: remedy}}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// canThrottle tells whether a disk can be slowed so that write-back counts:
// by the root group's rules under v1, by the container's io.max under v2.
func canThrottle() bool {
	if Mode() == CgroupV2 {
		return hasController("io")
	}
	dir := controllerMount("blkio")
	return dir != "" && exists(filepath.Join(dir, ruleWrite)) && exists(filepath.Join(dir, ruleRead))
}

// canLimit tells whether a controller is there, with the file of a v1 group.
func canLimit(controller, v1File string) bool {
	if Mode() == CgroupV2 {
		return hasController(controller)
	}
	dir := controllerMount(controller)
	if dir == "" {
		return false
	}
	found, err := filepath.Glob(filepath.Join(dir, v1File))
	return err == nil && len(found) > 0
}

func hasController(name string) bool {
	data, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
	if err != nil {
		return false
	}
	for _, c := range strings.Fields(string(data)) {
		if c == name {
			return true
		}
	}
	return false
}

// MemoryShort tells whether hosts whose limits together are asked may use more
// than this machine has free; 0 asks nothing. Hosts are made all the same.
func MemoryShort(asked int64) (child.Lack, bool) {
	free, err := machineMemory("MemAvailable")
	if err != nil || asked <= free {
		return child.Lack{}, false
	}
	return child.Lack{What: fmt.Sprintf("the hosts may use %s of memory together, and %s is free", mib(asked), mib(free)),
		Remedy: "ask for fewer hosts or less memory, or end what uses it", Warning: true}, true
}

// Full is the lack of room for disks, if there is one.
func Full(needed int64) (child.Lack, bool) {
	err := Room(needed)
	var full *FullError
	if errors.As(err, &full) {
		return child.Lack{What: fmt.Sprintf("data folder full: %s has %s free, the disks need %s", full.Dir, mib(full.Free), mib(full.Needed)),
			Remedy: "make room, or name another folder in KRIG_LAB_DIR"}, true
	}
	if err != nil {
		return child.Lack{What: err.Error(), Remedy: "name a folder with room in KRIG_LAB_DIR"}, true
	}
	return child.Lack{}, false
}

// machineMemory is a line of /proc/meminfo in bytes.
func machineMemory(line string) (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		fields := strings.Fields(sc.Text())
		if len(fields) >= 2 && fields[0] == line+":" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/meminfo has no line %s", line)
}
