package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"krig/internal/rundir"
)

// commandLimit is how long one command of podman, ip or tc may take. All are
// done within a second on an idle machine.
const commandLimit = 2 * time.Minute

// A command is one run of a tool on this machine. It is never stopped in
// mid-change when ctx ends: each is short, and half a network is worse than a
// whole one. It runs in a process group of its own, so that neither ^C nor
// krig's death reaches it.
type command struct {
	argv   []string
	ledger *rundir.Ledger // records the process while it runs; may be nil
	conf   string         // containers.conf; "" lends one to this command alone
}

// run returns standard output. The error holds the end of standard error.
func (c command) run(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, c.argv[0], c.argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	files, err := c.streams(cmd)
	if err != nil {
		return "", err
	}
	defer closeAll(files)
	if err := c.wait(cmd); err != nil {
		return "", fmt.Errorf("%s: %w%s", c.name(), err, tail(files[1]))
	}
	return contents(files[0])
}

// streams gives the command two files in memory for its output. Unlike pipes
// they neither end podman when krig dies nor stay open in its children.
func (c command) streams(cmd *exec.Cmd) ([]*os.File, error) {
	var files []*os.File
	for _, name := range []string{"out", "err", "containers.conf"} {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("running %s: %w", c.name(), err)
		}
		files = append(files, os.NewFile(uintptr(fd), name))
	}
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	conf := c.conf
	if conf == "" {
		if _, err := files[2].Write(containersConf()); err != nil {
			closeAll(files)
			return nil, err
		}
		cmd.ExtraFiles = files[2:]
		conf = "/proc/self/fd/3"
	}
	cmd.Env = append(os.Environ(), "CONTAINERS_CONF="+conf, "LC_ALL=C")
	return files, nil
}

// wait starts the command, writes it down, and waits for its end.
func (c command) wait(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	if c.ledger == nil {
		return cmd.Wait()
	}
	entry, err := c.ledger.Started(cmd.Process.Pid, c.name())
	if errors.Is(err, os.ErrNotExist) { // it has ended already
		return cmd.Wait()
	}
	werr := cmd.Wait()
	if err != nil {
		return errors.Join(err, werr)
	}
	return errors.Join(werr, c.ledger.Undo(entry, func() error { return nil }))
}

// name is what the command does: podman run, tc qdisc.
func (c command) name() string {
	return strings.Join(c.argv[:min(2, len(c.argv))], " ")
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func contents(f *os.File) (string, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 64<<20))
	return string(data), err
}

// tail is the end of what a command complained, with a colon before it.
func tail(f *os.File) string {
	data, err := contents(f)
	data = strings.TrimSpace(data)
	if err != nil || data == "" {
		return ""
	}
	if len(data) > 1000 {
		data = "..." + data[len(data)-1000:]
	}
	return ": " + data
}

// podman runs podman with the run's own configuration.
func (l *Lab) podman(ctx context.Context, args ...string) (string, error) {
	c := command{argv: append([]string{"podman"}, args...), ledger: l.run.Ledger, conf: l.conf}
	return c.run(ctx)
}

// tool runs a command whose effect ends with the container.
func tool(ctx context.Context, argv ...string) (string, error) {
	return command{argv: argv}.run(ctx)
}

// containersConf is krig's own configuration of podman: a runtime that this
// machine's cgroups bear, and limits that this process may give.
func containersConf() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "[containers]\ndefault_ulimits = [%q, %q]\n", limit("nofile", hardLimit(unix.RLIMIT_NOFILE)),
		limit("nproc", min(hardLimit(unix.RLIMIT_NPROC), pidMax())))
	fmt.Fprintf(&b, "\n[engine]\nruntime = %q\n\n[network]\nnetwork_backend = \"netavark\"\n", Runtime())
	return b.Bytes()
}

func limit(name string, n uint64) string {
	v := strconv.FormatUint(n, 10)
	return name + "=" + v + ":" + v
}

// hardLimit is this process's own hard limit, at most what fits podman's integers.
func hardLimit(resource int) uint64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(resource, &r); err != nil {
		return 1024
	}
	return min(r.Max, 1<<20)
}

// pidMax is how many processes the kernel numbers; a larger nproc limit is refused.
func pidMax() uint64 {
	data, err := os.ReadFile("/proc/sys/kernel/pid_max")
	if err != nil {
		return 32768
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 32768
	}
	return n
}

// container is what podman ps says of one.
type container struct {
	Names  []string
	State  string
	Labels map[string]string
}

// network is what podman network ls says of one.
type network struct {
	Name      string            `json:"name"`
	Interface string            `json:"network_interface"`
	Labels    map[string]string `json:"labels"`
	Subnets   []struct {
		Subnet string `json:"subnet"`
	} `json:"subnets"`
}

func listContainers(ctx context.Context) ([]container, error) {
	out, err := tool(ctx, "podman", "ps", "--all", "--filter", "label=krig-run", "--format", "json")
	return decodeList[container](out, err)
}

func listNetworks(ctx context.Context) ([]network, error) {
	out, err := tool(ctx, "podman", "network", "ls", "--format", "json")
	return decodeList[network](out, err)
}

func decodeList[T any](out string, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	var list []T
	if strings.TrimSpace(out) == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("reading podman's list: %w", err)
	}
	return list, nil
}
