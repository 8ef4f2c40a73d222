package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CgroupMode is how this machine's control groups are set up.
type CgroupMode string

// The modes.
const (
	CgroupV1     CgroupMode = "v1"
	CgroupV2     CgroupMode = "v2"
	CgroupHybrid CgroupMode = "hybrid" // controllers are v1's; v2 has the processes alone
)

const cgroupRoot = "/sys/fs/cgroup"

// Mode tells this machine's control groups apart.
func Mode() CgroupMode {
	if isCgroup2(cgroupRoot) {
		return CgroupV2
	}
	if isCgroup2(filepath.Join(cgroupRoot, "unified")) {
		return CgroupHybrid
	}
	return CgroupV1
}

func isCgroup2(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.CGROUP2_SUPER_MAGIC
}

// Runtime is the container runtime that podman is told to use: crun refuses
// v1 controllers beside a v2 hierarchy.
func Runtime() string {
	if Mode() != CgroupV2 {
		return "runc"
	}
	if _, err := exec.LookPath("crun"); err == nil {
		return "crun"
	}
	return "runc"
}

// controllerMount is where the root of a v1 controller is mounted; "" when it
// is not, or when only a part of its tree can be seen.
func controllerMount(controller string) string {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	return findController(string(data), controller)
}

// findController reads the kernel's table: ID parent dev root mount options
// [optional fields] - type source superoptions.
func findController(mountinfo, controller string) string {
	for line := range strings.Lines(mountinfo) {
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 || r[0] != "cgroup" || l[3] != "/" {
			continue
		}
		if slices.Contains(strings.Split(r[2], ","), controller) {
			return unescapeMount(l[4])
		}
	}
	return ""
}

// cgroupOf is the path of a process's cgroup below its controllers' mounts.
func cgroupOf(pid int) (string, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return "", fmt.Errorf("finding the host's cgroup: %w", err)
	}
	return parseCgroup(string(data))
}

// parseCgroup prefers the memory controller's line (v1) to the unified one.
func parseCgroup(text string) (string, error) {
	unified := ""
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			unified = parts[2]
		}
		for _, c := range strings.Split(parts[1], ",") {
			if c == "memory" {
				return parts[2], nil
			}
		}
	}
	if unified == "" {
		return "", errors.New("finding the host's cgroup: no memory controller")
	}
	return unified, nil
}
