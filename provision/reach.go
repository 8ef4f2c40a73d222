package provision

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"krig/internal/remote"
	"krig/internal/rundir"
)

const (
	reachLimit  = 3 * time.Second // one connection from a worker to a broker
	waysLimit   = 2 * time.Minute // all of them
	dialsAtOnce = 16              // of one worker
)

// errRefused says that the host is reached and nothing listens at the port, or
// that a firewall answers in its place, which looks the same.
var errRefused = errors.New("connection refused")

// dial opens a connection from a worker to a broker's port, and closes it.
func dial(ctx context.Context, c *remote.Conn, addr string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reachLimit, fmt.Errorf("no answer for %s", reachLimit))
	defer cancel()
	conn, err := c.DialContext(ctx, "tcp", addr)
	switch {
	case err == nil:
		conn.Close() // it was opened to see that it can be
		return nil
	case errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(strings.ToLower(err.Error()), "connection refused"):
		return errRefused // sshd tells it in words alone
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner // without the names of host and address
	}
	return err
}

// closedWays opens a connection from every worker to every broker's port, before
// anything is changed, where either host is new. A port at which nothing listens
// yet is as good as an answer: what a firewall swallows, or no route leads to, is a problem.
func closedWays(ctx context.Context, f *remote.Fleet, hosts []rundir.Host, isNew map[string]bool) []HostProblem {
	ctx, cancel := context.WithTimeout(ctx, waysLimit)
	defer cancel()
	var mu sync.Mutex
	var out []HostProblem
	workers, brokers := ofRole(hosts, rundir.Worker), ofRole(hosts, rundir.Broker)
	err := f.Each(ctx, namesOf(workers), func(ctx context.Context, worker string, c *remote.Conn) error {
		var g errgroup.Group
		g.SetLimit(dialsAtOnce)
		for _, b := range brokers {
			if !isNew[worker] && !isNew[b.Name] {
				continue
			}
			g.Go(func() error {
				err := dial(ctx, c, net.JoinHostPort(b.Internal, strconv.Itoa(brokerPort)))
				if err == nil || errors.Is(err, errRefused) {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				out = append(out, closedWay(worker, b, err))
				return nil
			})
		}
		return g.Wait()
	})
	if err != nil && ctx.Err() != nil { // a host that cannot be reached at all is told by the survey
		out = append(out, HostProblem{"workers", fmt.Sprintf("their ways to brokers could not all be tried within %s", waysLimit), "look at the firewalls between them"})
	}
	return out
}

func closedWay(worker string, b rundir.Host, err error) HostProblem {
	remedy := fmt.Sprintf("open TCP port %d of %s to %s: firewalls, security groups, routes", brokerPort, b.Name, worker)
	if strings.Contains(err.Error(), "AllowTcpForwarding") {
		remedy = "set AllowTcpForwarding yes in its sshd_config"
	}
	return HostProblem{worker, fmt.Sprintf("broker %s cannot be reached at port %d of %s: %v", b.Name, brokerPort, b.Internal, err), remedy}
}

// reach opens a connection from every worker to every broker of a cluster that
// runs: a firewall that refuses connections looked like a closed port before.
func (s *site) reach(ctx context.Context, cl *rundir.Cluster) error {
	return s.f.Each(ctx, namesOf(ofRole(s.hosts, rundir.Worker)), func(ctx context.Context, _ string, c *remote.Conn) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(dialsAtOnce)
		for _, b := range cl.Brokers {
			g.Go(func() error {
				if err := dial(ctx, c, b.Listener); err != nil {
					return fmt.Errorf("broker %d at %s cannot be reached: %w", b.ID, b.Listener, err)
				}
				return nil
			})
		}
		return g.Wait()
	})
}

func ofRole(hosts []rundir.Host, r rundir.Role) []rundir.Host {
	return slices.DeleteFunc(slices.Clone(hosts), func(h rundir.Host) bool { return !h.Has(r) })
}
