package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

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

// settle waits after a repeat until nothing of its load is left to do on the
// brokers, so that the next one does not pay for it. What is not quiet at the limit is
// recorded, not an error.
func (s *Session) settle(ctx context.Context, cl *rundir.Cluster, t *topics, limit time.Duration) result.Settle {
	s.run.Report(rundir.Event{Stage: "settle", Message: "after the load: until its topics are deleted and the brokers' disks are quiet"})
	return settled(ctx, limit, append(s.deleted(cl, t),
		func(ctx context.Context) (string, error) { return offline(ctx, t.admin, cl) },
		func(ctx context.Context) (string, error) { return s.flush(ctx, cl) }, // not earlier: pages of deleted files are never written
		func(ctx context.Context) (string, error) { return s.quiet(ctx, cl) },
	))
}

// forget waits after priming until its topics' files are gone: then their pages
// are never written, and nothing of them is left to wait for.
func (s *Session) forget(ctx context.Context, cl *rundir.Cluster, t *topics) {
	s.run.Report(rundir.Event{Stage: "settle", Message: "after priming: until its topics are deleted"})
	settled(ctx, settleLimit, s.deleted(cl, t))
}

// deleted are the steps until topics and their files are gone.
func (s *Session) deleted(cl *rundir.Cluster, t *topics) []settleStep {
	return []settleStep{
		t.known,
		func(ctx context.Context) (string, error) { return s.directories(ctx, cl, t.names) },
	}
}

// settleStep tells what is left; "" is nothing.
type settleStep func(context.Context) (string, error)

// settled goes through steps, each until nothing is left, within a limit over all.
func settled(ctx context.Context, limit time.Duration, steps []settleStep) result.Settle {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	residue := ""
	for _, step := range steps {
		if residue = until(ctx, step); residue != "" {
			break
		}
	}
	return result.Settle{Seconds: time.Since(started).Seconds(), Residue: residue}
}

// brokers asks all brokers at once and returns what the first of them, in
// order, has left.
func brokers(cl *rundir.Cluster, ask func(rundir.Node) (string, error)) (string, error) {
	left, errs := make([]string, len(cl.Brokers)), make([]error, len(cl.Brokers))
	var wg sync.WaitGroup
	for i, b := range cl.Brokers {
		wg.Go(func() { left[i], errs[i] = ask(b) })
	}
	wg.Wait()
	for _, l := range left {
		if l != "" {
			return l, nil
		}
	}
	return "", errors.Join(errs...)
}

// until asks again and again until nothing is left, and returns what was at the end of ctx.
func until(ctx context.Context, step settleStep) string {
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
	return brokers(cl, func(b rundir.Node) (string, error) {
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
		return "", nil
	})
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
	return brokers(cl, func(b rundir.Node) (string, error) {
		dirs, err := admin.DescribeBrokerLogDirs(ctx, b.ID, kadm.TopicsSet{})
		if err != nil {
			return "", fmt.Errorf("%s: describing log directories: %w", b.Host, err)
		}
		for _, d := range dirs {
			if d.Err != nil {
				return fmt.Sprintf("%s: log directory %s is offline: %v", b.Host, d.Dir, d.Err), nil
			}
		}
		return "", nil
	})
}

// flush has every broker's host write back its data disks, which the kernel
// would otherwise put off by up to half a minute. When it returns all that was
// waiting for them is written.
func (s *Session) flush(ctx context.Context, cl *rundir.Cluster) (string, error) {
	return brokers(cl, func(b rundir.Node) (string, error) {
		conn, err := s.fleet.Conn(ctx, b.Host)
		if err != nil {
			return "", err
		}
		_, err = conn.Root(ctx, append([]string{"sync", "-f"}, b.LogDirs...)...)
		if err != nil {
			return "", fmt.Errorf("%s: writing data disks back: %w", b.Host, err)
		}
		return "", nil
	})
}

// quiet tells of a data disk that still has work to do. The pages that wait to
// be written can only be counted for a whole kernel: where hosts share this
// machine's they are everybody's, and the host's own devices are asked instead.
func (s *Session) quiet(ctx context.Context, cl *rundir.Cluster) (string, error) {
	return brokers(cl, func(b rundir.Node) (string, error) {
		host, _ := s.host(b.Host)
		if host.SharesKernel() {
			return inFlight("/sys/class/block", host)
		}
		return s.dirty(ctx, host)
	})
}

// inFlight tells of requests that a host's devices have not finished; block is
// this machine's directory of block devices.
func inFlight(block string, h rundir.Host) (string, error) {
	for _, d := range h.Disks {
		device := filepath.Base(d.Device)
		text, err := os.ReadFile(filepath.Join(block, device, "inflight"))
		if err != nil {
			return "", fmt.Errorf("%s: asking what its disk has in flight: %w", h.Name, err)
		}
		for word := range strings.FieldsSeq(string(text)) { // reads and writes
			if word != "0" {
				return fmt.Sprintf("%s: %s has %s requests in flight", h.Name, device, word), nil
			}
		}
	}
	return "", nil
}

// dirty tells of pages not yet written that come to a second or more of a
// host's data disk's rate.
func (s *Session) dirty(ctx context.Context, h rundir.Host) (string, error) {
	conn, err := s.fleet.Conn(ctx, h.Name)
	if err != nil {
		return "", err
	}
	text, err := conn.Output(ctx, "cat", "/proc/meminfo")
	if err != nil {
		return "", err
	}
	waiting, err := dirtyPages(text)
	if err == nil && waiting > s.diskWrite(h) {
		return fmt.Sprintf("%s: %.0f MB wait to be written, more than a second of its disk's rate", h.Name, waiting/1e6), nil
	}
	return "", err
}

// diskWrite is what a host's data disk writes in a second, B.
func (s *Session) diskWrite(h rundir.Host) float64 {
	if s.rig.Limits != nil {
		if l := s.rig.Limits.Hosts[h.Name]; l.DiskWrite != nil {
			return *l.DiskWrite
		}
	}
	return unthrottled
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
