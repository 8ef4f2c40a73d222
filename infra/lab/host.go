package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"krig/internal/rundir"
)

func (l *Lab) container(name string) string { return containerName(l.run, name) }

func containerName(run *rundir.Run, host string) string { return "krig-" + run.Short + "-" + host }

func (l *Lab) backing(name string) string {
	return filepath.Join(l.Dir, l.container(name)+".img")
}

func event(host, format string, args ...any) rundir.Event {
	return rundir.Event{Stage: "infra", Host: host, Message: fmt.Sprintf(format, args...)}
}

// Create makes one host and returns when its sshd answers. When it fails, what
// it made stands until [Lab.Remove].
func (l *Lab) Create(ctx context.Context, s Spec) (rundir.Host, error) {
	unlock, err := l.alone(ctx, lockOf(s.Name))
	if err != nil {
		return rundir.Host{}, err
	}
	defer unlock()
	h, err := l.create(ctx, s)
	if err != nil {
		return rundir.Host{}, fmt.Errorf("making host %s: %w", s.Name, err)
	}
	return h, nil
}

func (l *Lab) create(ctx context.Context, s Spec) (rundir.Host, error) {
	if exists(filepath.Join(l.Dir, s.Name)) { // what an earlier try left
		if err := l.remove(ctx, s.Name); err != nil {
			return rundir.Host{}, err
		}
	}
	ip, err := l.address(ctx, s.Name)
	if err != nil {
		return rundir.Host{}, err
	}
	dirs, key, err := l.hostFolder(s.Name)
	if err != nil {
		return rundir.Host{}, err
	}
	device, err := l.attachDisk(s)
	if err != nil {
		return rundir.Host{}, err
	}
	argv, err := l.runArgs(s, ip.String(), device, dirs)
	if err != nil {
		return rundir.Host{}, err
	}
	err = l.record(KindContainer, l.container(s.Name), func() error {
		_, err := l.podman(ctx, argv...)
		return err
	})
	if err != nil {
		return rundir.Host{}, err
	}
	pid, err := readPID(filepath.Join(dirs, "pid"))
	if err != nil {
		return rundir.Host{}, err
	}
	if err := l.pinBridge(ctx); err != nil {
		return rundir.Host{}, err
	}
	if device != "" {
		if err := joinRoot(pid); err != nil {
			return rundir.Host{}, err
		}
	}
	if err := shape(ctx, pid, s.LinkRate); err != nil {
		return rundir.Host{}, err
	}
	if err := l.awaitSSH(ctx, s.Name, ip.String()); err != nil {
		return rundir.Host{}, err
	}
	h, err := l.describe(s, ip.String(), device, key, pid)
	if err != nil {
		return rundir.Host{}, err
	}
	return h, l.run.WriteJSON(Made{Spec: s, Engine: l.engine, Host: h}, recordOf(s.Name))
}

// hostFolder makes a host's own folder: its keys, and room for what it writes
// below /var and /opt, where Kafka and its data go.
func (l *Lab) hostFolder(name string) (dir, hostKey string, err error) {
	dir = filepath.Join(l.Dir, name)
	for _, d := range upperDirs() {
		for _, part := range []string{d, d + ".work"} {
			if err := os.MkdirAll(filepath.Join(dir, part), 0o755); err != nil {
				return "", "", err
			}
		}
	}
	hostKey, err = writeSSH(filepath.Join(dir, "ssh"), l.Client, name)
	return dir, hostKey, err
}

// upperDirs are the parts of a host's root whose changes go to the data folder
// instead of podman's own, which may lie in memory.
func upperDirs() []string { return []string{"opt", "var"} }

// attachDisk allocates, attaches and throttles a host's disk; "" when it has none.
func (l *Lab) attachDisk(s Spec) (device string, err error) {
	if s.Disk.Size == 0 {
		return "", nil
	}
	file := l.backing(s.Name)
	err = l.record(KindLoop, file, func() error {
		if err := allocate(file, s.Disk.Size); err != nil {
			return err
		}
		device, err = attach(file)
		return err
	})
	if err != nil || Mode() == CgroupV2 {
		return device, err
	}
	return device, l.record(KindThrottle, device, func() error { return throttle(device, s.Disk) })
}

// start makes sshd's folder in the empty /run, and forgets this machine's
// password hashes: root's may be locked, which sshd would mind.
const start = `mkdir -p -m 0755 /run/sshd && echo 'root:*:::::::' >/etc/shadow && exec /usr/sbin/sshd -D -e`

// runArgs are the arguments of podman run. All flags stand before --rootfs.
// A host has every capability that its namespaces bound, no device except its
// disk, and the kernel's settings are read-only: they are this machine's.
func (l *Lab) runArgs(s Spec, ip, device, dir string) ([]string, error) {
	labDir := filepath.Dir(l.Dir)
	args := []string{"run", "--detach", "--name", l.container(s.Name), "--hostname", s.Name,
		"--network", networkName(l.run.Short), "--ip", ip, "--mac-address", macOf(ip), "--pidfile", filepath.Join(dir, "pid"),
		"--cap-add", "ALL", "--cap-drop", strings.Join(machineCaps(), ","), "--cgroupns", "private", "--systemd", "false", "--pids-limit", "-1",
		"--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
		"--security-opt", "label=disable", "--security-opt", "unmask=/sys/dev/block",
		"--log-driver", "k8s-file", "--restart", "no", "--stop-timeout", "0"}
	args = append(args, flags(l.label)...)
	if s.Memory > 0 {
		args = append(args, memoryFlags(s.Memory)...)
	}
	if s.CPUs > 0 {
		args = append(args, "--cpus", strconv.FormatFloat(s.CPUs, 'f', -1, 64))
	}
	if device != "" {
		args = append(args, "--device", device)
		if Mode() == CgroupV2 {
			args = append(args, throttleFlags(device, s.Disk)...)
		}
	}
	for _, d := range upperDirs() {
		upper := filepath.Join(dir, d)
		if strings.ContainsAny(upper, ",:") {
			return nil, fmt.Errorf("the data folder %s must not have a comma or colon in its name: name another in KRIG_LAB_DIR", labDir)
		}
		args = append(args, "--volume", "/"+d+":/"+d+":O,upperdir="+upper+",workdir="+upper+".work")
	}
	args = append(args, maskFlags(l.Hidden)...)
	args = append(args, lxcfsFlags(l.Lxcfs)...)
	args = append(args, "--volume", filepath.Join(dir, "ssh")+":/etc/ssh:ro")
	return append(args, "--rootfs", "/:O", "/bin/sh", "-c", start), nil
}

// memoryFlags limit memory, and memory with swap to the same where the kernel
// can tell: a host that swaps would measure the machine's own disk.
func memoryFlags(most int64) []string {
	n := strconv.FormatInt(most, 10) + "b"
	if canLimit("memory", "memory.memsw.limit_in_bytes") {
		return []string{"--memory", n, "--memory-swap", n}
	}
	return []string{"--memory", n}
}

// machineCaps are the capabilities that reach beyond a host's namespaces: to
// files by handle, modules, ports, the clock and the kernel's log of this machine.
func machineCaps() []string {
	return []string{"DAC_READ_SEARCH", "SYS_MODULE", "SYS_RAWIO", "SYS_TIME", "SYSLOG"}
}

func readPID(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("finding the host's first process: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("finding the host's first process: %w", err)
	}
	return pid, nil
}

// describe is the host as the next stages know it.
func (l *Lab) describe(s Spec, ip, device, key string, pid int) (rundir.Host, error) {
	cgroup, err := cgroupOf(pid)
	if err != nil {
		return rundir.Host{}, err
	}
	boot, err := rundir.BootID()
	if err != nil {
		return rundir.Host{}, err
	}
	h := rundir.Host{
		Name: s.Name, Internal: ip, Kernel: boot, Arch: runtime.GOARCH, Lab: true,
		SSH:      rundir.SSH{Address: ip, Port: 22, User: "root", KeyFile: keyFile, HostKey: []string{key}},
		LinkRate: s.LinkRate, LinkName: linkName, CPUs: s.CPUs, Memory: s.Memory,
		Cgroup: cgroup, OwnProc: l.Lxcfs != "", Disks: []rundir.Disk{},
	}
	if device != "" {
		h.Disks = append(h.Disks, rundir.Disk{ID: l.backing(s.Name), Device: device, Size: s.Disk.Size, Profile: s.Disk.Profile,
			Write: s.Disk.Write, Read: s.Disk.Read, IOPS: s.Disk.IOPS})
	}
	if h.Memory == 0 {
		h.Memory, err = machineMemory("MemTotal")
	}
	return h, err
}

// awaitSSH waits until the host's sshd introduces itself.
func (l *Lab) awaitSSH(ctx context.Context, name, ip string) error {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var err error
	for limited.Err() == nil {
		if err = greeted(limited, net.JoinHostPort(ip, "22")); err == nil {
			return nil
		}
		select {
		case <-limited.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	log, lerr := l.podman(ctx, "logs", "--tail", "5", l.container(name))
	return errors.Join(fmt.Errorf("waiting for sshd: %w: it said %q", err, log), lerr)
}

func greeted(ctx context.Context, addr string) error {
	d := net.Dialer{Timeout: 2 * time.Second}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "SSH-2.0-") {
		return fmt.Errorf("%s answers %q, which is not sshd", addr, line)
	}
	return nil
}
