package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"krig/infra/child"
)

// commandLimit is how long one command of podman, ip or tc may take. All are
// done within a second on an idle machine.
const commandLimit = 2 * time.Minute

// podman runs podman with the run's own configuration, written down in its
// ledger. It runs in the run's folder: what watches a host stays there as long
// as the host stands, and writes there that the host ran out of memory.
func (l *Lab) podman(ctx context.Context, args ...string) (string, error) {
	return child.Command{
		Argv: append([]string{"podman"}, args...), Dir: l.Dir, Env: environment(l.conf()), Limit: commandLimit, Ledger: l.run.Ledger,
	}.Run(ctx)
}

// tool runs a command whose effect ends with the container, or that makes
// nothing. It is lent a configuration of podman.
func tool(ctx context.Context, argv ...string) (string, error) {
	conf, err := child.Memory("containers.conf")
	if err != nil {
		return "", fmt.Errorf("running %s: %w", argv[0], err)
	}
	defer conf.Close()
	if _, err := conf.Write(containersConf()); err != nil {
		return "", fmt.Errorf("running %s: %w", argv[0], err)
	}
	return child.Command{
		Argv: argv, Env: environment("/proc/self/fd/3"), Files: []*os.File{conf}, Limit: commandLimit,
	}.Run(ctx)
}

func environment(conf string) []string { return []string{"CONTAINERS_CONF=" + conf, "LC_ALL=C"} }

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
