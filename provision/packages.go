package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// lack is a program that a host has not, and the package that brings it.
type lack struct {
	what    string
	pkg     string
	remedy  string
	program string // looked for after the installation
}

// javaPackage brings a Java that runs every Kafka from 2.8 on.
const javaPackage = "openjdk-17-jre-headless"

// missing lists what a host lacks for a cell.
func missing(s *survey, c *experiment.Cell) []lack {
	var out []lack
	need := javaFor(c.Kafka.Version)
	if j, ok := s.bestJava(need); !ok {
		what := "Java is missing"
		if j.major > 0 {
			what = fmt.Sprintf("its Java is %d, Kafka %s needs %d", j.major, c.Kafka.Version, need)
		}
		out = append(out, lack{what, javaPackage, fmt.Sprintf("install Java %d or later", need), "java"})
	}
	if s.facts.Sysstat == "" && collects(c) {
		out = append(out, lack{"sysstat is missing", "sysstat", "install sysstat, or switch sar, iostat and pidstat off under collect", "sar"})
	}
	return out
}

// collects tells whether a cell needs the tools of sysstat.
func collects(c *experiment.Cell) bool {
	return c.Collect.Sar || c.Collect.Iostat || c.Collect.Pidstat
}

const (
	aptLimit = 10 * time.Minute // one host's installation, waiting for locks included
	aptPause = 2 * time.Second  // between two looks at a lock
)

// install brings packages onto a host. It waits for another apt to end,
// repairs an interrupted dpkg once and fetches package lists once.
func install(ctx context.Context, run *rundir.Run, c *remote.Conn, host string, lacks []lack) ([]string, error) {
	var names []string
	for _, l := range lacks {
		names = append(names, l.pkg)
	}
	if len(names) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, aptLimit)
	defer cancel()
	run.Report(rundir.Event{Stage: "prepare", Host: host, Message: "installing " + strings.Join(names, " ")})
	entries := make([]rundir.Entry, 0, len(names))
	for _, n := range names {
		entries = append(entries, rundir.Entry{Kind: kindPackage, Scope: host, Ref: n})
	}
	err := recorded(run, entries, func() error { return aptInstall(ctx, c, names) })
	if err != nil {
		return nil, fmt.Errorf("installing %s: %w", strings.Join(names, " "), err)
	}
	return names, nil
}

// aptInstall goes on until apt-get has installed packages or gives up for a
// reason that does not pass.
func aptInstall(ctx context.Context, c *remote.Conn, names []string) error {
	repaired, updated := false, false
	for {
		err := apt(ctx, c, append([]string{"install", "-y", "-q", "--no-install-recommends"}, names...)...)
		if err == nil {
			return nil
		}
		switch verdict, holder := aptVerdict(err.Error()); {
		case verdict == aptLocked:
			if perr := pause(ctx, aptPause); perr != nil {
				return fmt.Errorf("apt is locked by %s and did not become free: %w", holder, perr)
			}
		case verdict == aptInterrupted && !repaired:
			repaired = true
			if err := c.Exec(ctx, remote.Cmd{Argv: []string{"dpkg", "--configure", "-a"}, Become: true, Env: aptEnv}); err != nil {
				return fmt.Errorf("repairing an interrupted dpkg: %w", err)
			}
		case verdict == aptNoLists && !updated:
			updated = true
			if err := apt(ctx, c, "update", "-q"); err != nil {
				return fmt.Errorf("fetching package lists: %w", err)
			}
		default:
			return err
		}
	}
}

var aptEnv = []string{"DEBIAN_FRONTEND=noninteractive", "LC_ALL=C"}

// apt runs apt-get; its error holds what apt-get said.
func apt(ctx context.Context, c *remote.Conn, args ...string) error {
	var said bytes.Buffer
	err := c.Exec(ctx, remote.Cmd{Argv: append([]string{"apt-get"}, args...), Become: true, Env: aptEnv, Stderr: &said})
	if err == nil {
		return nil
	}
	if text := aptErrors(said.String()); text != "" {
		return errors.Join(errors.New(text), err)
	}
	return err
}

// aptErrors are the lines of apt-get's that name an error.
func aptErrors(text string) string {
	var out []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "E:") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "; ")
}

// What a failed apt-get calls for.
const (
	aptFailed      = iota
	aptLocked      // wait
	aptInterrupted // repair once
	aptNoLists     // fetch package lists once
)

var aptHolder = regexp.MustCompile(`held by process (\d+) \(([^)]+)\)`)

// aptVerdict reads apt-get's errors; holder is who holds the lock.
func aptVerdict(text string) (verdict int, holder string) {
	switch {
	case strings.Contains(text, "Could not get lock"), strings.Contains(text, "Unable to lock directory"),
		strings.Contains(text, "Unable to acquire the dpkg frontend lock"):
		if m := aptHolder.FindStringSubmatch(text); m != nil {
			return aptLocked, fmt.Sprintf("process %s (%s)", m[1], m[2])
		}
		return aptLocked, "another process"
	case strings.Contains(text, "dpkg was interrupted"):
		return aptInterrupted, ""
	case strings.Contains(text, "Unable to locate package"), strings.Contains(text, "has no installation candidate"):
		return aptNoLists, ""
	}
	return aptFailed, ""
}
