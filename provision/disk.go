package provision

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"krig/internal/remote"
	"krig/internal/rundir"
)

//go:embed disk.sh
var diskScript string

const diskLimit = 5 * time.Minute

// makeDisk puts a file system on a host's data disk and mounts it; a disk that
// already holds this run's is mounted alone. It returns the mount point, ""
// where the host has no data disk.
func makeDisk(ctx context.Context, run *rundir.Run, c *remote.Conn, h rundir.Host, s *survey) (string, error) {
	if len(h.Disks) == 0 {
		return "", nil
	}
	l := layoutOf(run)
	dev := h.Disks[0].Device
	ctx, cancel := context.WithTimeout(ctx, diskLimit)
	defer cancel()
	kind := "ext4"
	if s.tools["mkfs.xfs"] {
		kind = "xfs"
	}
	entries := []rundir.Entry{{Kind: kindDirectory, Scope: h.Name, Ref: l.state()}}
	if s.disks[dev].holds["LABEL"] != l.label() {
		entries = append(entries, rundir.Entry{Kind: kindFilesystem, Scope: h.Name, Ref: dev})
	}
	entries = append(entries, rundir.Entry{Kind: kindMount, Scope: h.Name, Ref: l.data()})
	err := recorded(run, entries, func() error {
		_, err := runScript(ctx, c, diskScript, dev, kind, l.label(), l.data())
		return err
	})
	if err != nil {
		return "", fmt.Errorf("making the data disk %s: %w", dev, err)
	}
	return l.data(), nil
}
