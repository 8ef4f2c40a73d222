package lab

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"krig/infra/child"
	"krig/internal/rundir"
)

// RunEnv names the environment variable that has a run's directory in the
// programs that make the run's hosts for krig, and in all that these start: by
// it they are found when nobody lives who knows them.
const RunEnv = "KRIG_LAB_RUN"

// A maker is a process that makes something of a run right now: those of a
// dead krig go on.
type maker struct {
	child.Process
	label rundir.Label
}

// makers lists podman's commands by the label in their arguments, and all else
// by its environment, the oldest first: it may have started the others.
func makers() []maker {
	var out []maker
	for _, p := range child.Processes(func([]string) bool { return true }) {
		if l := makes(p); l.Run != "" {
			out = append(out, maker{p, l})
		}
	}
	slices.SortStableFunc(out, func(a, b maker) int { return int(a.Owner.Start) - int(b.Owner.Start) })
	return out
}

// makes is the label of what a process makes; without a run when it makes nothing.
func makes(p child.Process) rundir.Label {
	if filepath.Base(p.Argv[0]) == "podman" {
		if l := labelFromArgs(p.Argv); l.Run != "" {
			return l
		}
	}
	env := environOf(p.Owner.PID)
	if env[RunEnv] == "" || p.Owner.PID == os.Getpid() {
		return rundir.Label{}
	}
	id := filepath.Base(env[RunEnv])
	m := folderForm.FindStringSubmatch("krig-" + id[strings.LastIndexByte(id, '-')+1:])
	if m == nil {
		return rundir.Label{}
	}
	return rundir.Label{Run: m[1], Hold: rundir.HoldRun, Scope: env["KRIG_SCOPE"]}
}

// environOf is the environment that a process was started with; nothing when it
// has ended.
func environOf(pid int) map[string]string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return nil
	}
	out := map[string]string{}
	for _, kv := range strings.Split(string(data), "\x00") {
		k, v, _ := strings.Cut(kv, "=")
		out[k] = v
	}
	return out
}

// programOf is the name of a process's program; "" when it has ended.
func programOf(o rundir.Owner) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(o.PID) + "/cmdline")
	if err != nil {
		return ""
	}
	argv0, _, _ := strings.Cut(string(data), "\x00")
	return filepath.Base(argv0)
}

// InLedger does a thing while the run's ledger knows this process by it, so that
// krig down ends it when whoever started it is dead.
func (l *Lab) InLedger(what string, do func() error) error {
	entry, err := l.run.Ledger.Started(os.Getpid(), "krig lab-host "+what)
	if err != nil {
		return err
	}
	return errors.Join(do(), l.run.Ledger.Undo(entry, func() error { return nil }))
}
