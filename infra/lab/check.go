package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// A Lack is one thing that this machine lacks, and what gives it.
type Lack struct{ What, Remedy string }

// Needs is what the hosts of a rig ask of this machine.
type Needs struct {
	Disks    bool
	Throttle bool
	CPUs     bool // a limit of processors
	Memory   bool // a limit of memory
	Shape    bool
}

// program is one that the lab runs, and the Debian package that has it.
type program struct{ name, path, pkg string }

func programs() []program {
	return []program{
		{name: "podman", pkg: "podman"},
		{name: Runtime(), pkg: Runtime()},
		{name: "netavark", path: "/usr/lib/podman/netavark", pkg: "netavark"},
		{name: "iptables", pkg: "iptables"},
		{name: "ip", pkg: "iproute2"},
		{name: "sshd", path: "/usr/sbin/sshd", pkg: "openssh-server"},
	}
}

// missing are the programs that are not there.
func missing(all []program) []Lack {
	var out []Lack
	for _, p := range all {
		if _, err := exec.LookPath(p.name); err == nil {
			continue
		}
		if p.path != "" && exists(p.path) || p.name == "netavark" && exists("/usr/libexec/podman/netavark") {
			continue
		}
		out = append(out, Lack{p.name + " is not installed", "apt-get install " + p.pkg})
	}
	return out
}

// Lacks tells what this machine lacks for any lab host, with what the needs
// add. It only reads.
func Lacks(n Needs) []Lack {
	out := missing(programs())
	if n.Shape {
		out = append(out, missing([]program{{name: "tc", pkg: "iproute2"}, {name: "nsenter", pkg: "util-linux"}})...)
	}
	if os.Geteuid() != 0 {
		out = append(out, Lack{"krig does not run as root, which the lab's containers, links and disks need", "run it with sudo"})
	}
	if n.Disks && !exists("/dev/loop-control") {
		out = append(out, Lack{"there is no /dev/loop-control, which the lab's disks need", "modprobe loop"})
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

func lackIf(missing bool, what, remedy string) []Lack {
	if !missing {
		return nil
	}
	return []Lack{{what, remedy}}
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
// than this machine has free; 0 asks nothing.
func MemoryShort(asked int64) (Lack, bool) {
	free, err := machineMemory("MemAvailable")
	if err != nil || asked <= free {
		return Lack{}, false
	}
	return Lack{fmt.Sprintf("the hosts may use %s of memory together, and %s is free", mib(asked), mib(free)),
		"ask for fewer hosts or less memory, or end what uses it"}, true
}

// Full is the lack of room for disks, if there is one.
func Full(needed int64) (Lack, bool) {
	err := Room(needed)
	var full *FullError
	if errors.As(err, &full) {
		return Lack{fmt.Sprintf("data folder full: %s has %s free, the disks need %s", full.Dir, mib(full.Free), mib(full.Needed)),
			"make room, or name another folder in KRIG_LAB_DIR"}, true
	}
	if err != nil {
		return Lack{err.Error(), "name a folder with room in KRIG_LAB_DIR"}, true
	}
	return Lack{}, false
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
