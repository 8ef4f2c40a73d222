package stack

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"krig/internal/remote"
	"krig/internal/rundir"
)

//go:embed await.sh
var awaitScript string

const (
	awaitAtOnce = 16               // hosts that are asked side by side
	askLimit    = 30 * time.Second // one host's answer, once it lets krig in
)

// Await waits until every host lets krig in, with the very host key that it
// has, for limit at the most; then it asks each what it is. It returns the hosts
// with kernel, architecture, memory, link and disks filled in: a disk's device is
// the kernel's own name for it, its size what the kernel says, its id, where there
// was none, its name below /dev/disk/by-id, or "". run's directory is where
// relative key files lie. When some fail, all are waited for, and joined.
func Await(ctx context.Context, run *rundir.Run, hosts []rundir.Host, limit time.Duration) ([]rundir.Host, error) {
	out := make([]rundir.Host, len(hosts))
	errs := make([]error, len(hosts))
	var group errgroup.Group
	group.SetLimit(awaitAtOnce)
	for i, h := range hosts {
		group.Go(func() error {
			out[i], errs[i] = await(ctx, run, h, limit)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("waiting for the hosts: %w", err)
	}
	return out, nil
}

func await(ctx context.Context, run *rundir.Run, h rundir.Host, limit time.Duration) (rundir.Host, error) {
	begun := time.Now()
	c, err := remote.DialBooting(ctx, h, run.Dir, limit)
	if err != nil {
		return h, err
	}
	defer c.Close()
	args := []string{"sh", "-c", awaitScript, "sh", h.Internal}
	for _, d := range h.Disks {
		args = append(args, d.Device, d.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	said, err := c.Output(ctx, args...)
	if err == nil {
		h, err = told(h, said)
	}
	if err != nil {
		return h, fmt.Errorf("host %s: asking what it is: %w", h.Name, err)
	}
	run.Report(rundir.Event{Stage: "infra", Host: h.Name, Message: fmt.Sprintf("answers at %s after %s", h.SSH.Address, time.Since(begun).Round(100*time.Millisecond))})
	return h, nil
}

// told fills in what a host said of itself.
func told(h rundir.Host, said string) (rundir.Host, error) {
	disks := h.Disks
	h.Disks = nil
	lines := bufio.NewScanner(strings.NewReader(said))
	for lines.Scan() {
		word, value, _ := strings.Cut(lines.Text(), "\t")
		switch word {
		case "kernel":
			h.Kernel = value
		case "machine":
			h.Arch = archOf(value)
		case "memory":
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return h, fmt.Errorf("its memory is %q: expected a number of bytes", value)
			}
			h.Memory = n
		case "link":
			h.LinkName = value
		case "disk":
			if len(h.Disks) == len(disks) {
				return h, fmt.Errorf("it told of more disks than the %d that it was asked for", len(disks))
			}
			d, err := diskTold(disks[len(h.Disks)], value)
			if err != nil {
				return h, err
			}
			h.Disks = append(h.Disks, d)
		}
	}
	if h.Kernel == "" || h.Arch == "" || len(h.Disks) != len(disks) {
		return h, fmt.Errorf("it did not tell all that it was asked: %q", said)
	}
	return h, lines.Err()
}

// diskTold is a disk as the host knows it.
func diskTold(d rundir.Disk, value string) (rundir.Disk, error) {
	f := strings.Split(value, "\t")
	const fields = 3 // device, size, id
	if len(f) != fields {
		return d, fmt.Errorf("it told %q of a disk", value)
	}
	size, err := strconv.ParseInt(f[1], 10, 64)
	switch what := strings.TrimSpace(d.Device + " " + d.ID); {
	case err != nil:
		return d, fmt.Errorf("disk %s: its size is %q", what, f[1])
	case size == 0:
		return d, fmt.Errorf("disk %s: there is no such block device on it: say its device as the host names it, or its id as it ends a name below /dev/disk/by-id", what)
	case size < d.Size:
		return d, fmt.Errorf("disk %s has %d bytes, where the output says %d", what, size, d.Size)
	}
	d.Device, d.Size, d.ID = f[0], size, f[2]
	return d, nil
}

// archOf is the kernel's word for an architecture in GOARCH's words.
func archOf(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}
