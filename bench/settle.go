package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"krig/internal/remote"
	"krig/internal/result"
	"krig/internal/rundir"
)

const (
	settleLimit = 90 * time.Second
	settleShort = 10 * time.Second // of a cluster that is broken and will be mended
	settleLook  = 250 * time.Millisecond
	// unthrottled is the rate that a disk is taken to have when nothing is known of it, B/s.
	unthrottled = 100e6
)

// settle waits until nothing of a load is left to do on the brokers, so that
// the next one does not pay for it. What is not quiet at the limit is
// recorded, not an error.
func (s *Session) settle(ctx context.Context, cl *rundir.Cluster, t *topics, limit time.Duration) result.Settle {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s.run.Report(rundir.Event{Stage: "settle", Message: "waiting until topics are gone and disks are quiet"})
	steps := []func(context.Context) (string, error){
		func(ctx context.Context) (string, error) { return t.known(ctx) },
		func(ctx context.Context) (string, error) { return s.directories(ctx, cl, t.names) },
		func(ctx context.Context) (string, error) { return offline(ctx, t.admin, cl) },
		func(ctx context.Context) (string, error) { return s.flush(ctx, cl) }, // not earlier: pages of deleted files are never written
		func(ctx context.Context) (string, error) { return s.dirty(ctx, cl) },
	}
	residue := ""
	for _, step := range steps {
		if residue = until(ctx, step); residue != "" {
			break
		}
	}
	return result.Settle{Seconds: time.Since(started).Seconds(), Residue: residue}
}

// until asks again and again until nothing is left, and returns what was at the end of ctx.
func until(ctx context.Context, step func(context.Context) (string, error)) string {
	for {
		left, err := step(ctx)
		if err == nil && left == "" {
			return ""
		}
		select {
		case <-time.After(settleLook):
		case <-ctx.Done():
			if left == "" {
				left = err.Error()
			}
			return left
		}
	}
}

// known names a topic that the cluster still knows.
func (t *topics) known(ctx context.Context) (string, error) {
	listed, err := t.admin.ListTopics(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range t.names {
		if listed.Has(name) {
			return "topic " + name + " is still known", nil
		}
	}
	return "", nil
}

// directories names a directory of a deleted topic that is still on a broker's disk.
func (s *Session) directories(ctx context.Context, cl *rundir.Cluster, topics []string) (string, error) {
	for _, b := range cl.Brokers {
		conn, err := s.fleet.Conn(ctx, b.Host)
		if err != nil {
			return "", err
		}
		for _, dir := range b.LogDirs {
			text, err := conn.Root(ctx, "ls", "-1", dir)
			if err != nil {
				return "", err
			}
			if left := leftIn(text, topics); left != "" {
				return fmt.Sprintf("%s: %s is not deleted yet", b.Host, filepath.Join(dir, left)), nil
			}
		}
	}
	return "", nil
}

// leftIn finds a partition's directory (TOPIC-N, or TOPIC-N.ID-delete) of a topic.
func leftIn(listing string, topics []string) string {
	for name := range strings.Lines(listing) {
		name = strings.TrimSpace(name)
		for _, topic := range topics {
			rest, ok := strings.CutPrefix(name, topic+"-")
			if ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				return name
			}
		}
	}
	return ""
}

// offline names a log directory that its broker has given up.
func offline(ctx context.Context, admin *kadm.Client, cl *rundir.Cluster) (string, error) {
	for _, b := range cl.Brokers {
		dirs, err := admin.DescribeBrokerLogDirs(ctx, b.ID, kadm.TopicsSet{})
		if err != nil {
			return "", fmt.Errorf("%s: describing log directories: %w", b.Host, err)
		}
		for _, d := range dirs {
			if d.Err != nil {
				return fmt.Sprintf("%s: log directory %s is offline: %v", b.Host, d.Dir, d.Err), nil
			}
		}
	}
	return "", nil
}

// flush has every broker's host write back its data disk, which the kernel
// would otherwise put off by up to half a minute.
func (s *Session) flush(ctx context.Context, cl *rundir.Cluster) (string, error) {
	names := make([]string, 0, len(cl.Brokers))
	for _, b := range cl.Brokers {
		names = append(names, b.Host)
	}
	err := s.fleet.Each(ctx, names, func(ctx context.Context, name string, c *remote.Conn) error {
		_, err := c.Root(ctx, "sync", "-f", s.dataDir(cl, name))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("writing data disks back: %w", err)
	}
	return "", nil
}

func (s *Session) dataDir(cl *rundir.Cluster, host string) string {
	for _, b := range cl.Brokers {
		if b.Host == host {
			return b.LogDirs[0]
		}
	}
	return "/"
}

// dirty tells of pages not yet written that come to a second or more of a
// data disk's rate.
func (s *Session) dirty(ctx context.Context, cl *rundir.Cluster) (string, error) {
	for _, b := range cl.Brokers {
		host, _ := s.host(b.Host)
		rate := s.writeRate(host)
		waiting, err := s.waiting(ctx, host)
		if err != nil {
			return "", err
		}
		if waiting > rate {
			return fmt.Sprintf("%s: %.0f MB wait to be written, more than a second of its disk's rate", b.Host, waiting/1e6), nil
		}
	}
	return "", nil
}

// writeRate is what a host's data disk writes in a second. Hosts on this
// machine's kernel share its pages: there it is the sum over all of them.
func (s *Session) writeRate(h rundir.Host) float64 {
	if !h.SharesKernel() {
		return s.diskWrite(h)
	}
	var total float64
	for _, other := range s.hosts(rundir.Broker) {
		if other.Kernel == h.Kernel {
			total += s.diskWrite(other)
		}
	}
	return total
}

func (s *Session) diskWrite(h rundir.Host) float64 {
	if s.rig.Limits != nil {
		if l := s.rig.Limits.Hosts[h.Name]; l.DiskWrite != nil {
			return *l.DiskWrite
		}
	}
	return unthrottled
}

// waiting is the bytes of dirty and write-back pages of a host's kernel.
func (s *Session) waiting(ctx context.Context, h rundir.Host) (float64, error) {
	if h.SharesKernel() { // its own /proc may not show them
		text, err := os.ReadFile("/proc/meminfo")
		if err != nil {
			return 0, err
		}
		return dirtyPages(string(text))
	}
	conn, err := s.fleet.Conn(ctx, h.Name)
	if err != nil {
		return 0, err
	}
	text, err := conn.Output(ctx, "cat", "/proc/meminfo")
	if err != nil {
		return 0, err
	}
	return dirtyPages(text)
}

// dirtyPages reads Dirty and Writeback of /proc/meminfo, in bytes.
func dirtyPages(meminfo string) (float64, error) {
	var total float64
	found := 0
	for line := range strings.Lines(meminfo) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "Dirty:" && words[0] != "Writeback:" {
			continue
		}
		kib, err := strconv.ParseUint(words[1], 10, 53)
		if err != nil {
			return 0, fmt.Errorf("/proc/meminfo: %w", err)
		}
		total += float64(kib) * 1024
		found++
	}
	if found != 2 {
		return 0, errors.New("/proc/meminfo: it has no line for dirty pages")
	}
	return total, nil
}
