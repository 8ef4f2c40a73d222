package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"krig/internal/agent"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// machine is the name of this machine among the hosts of a lab.
const machine = rundir.Machine

// Session holds one agent on each host of a rig state and, where hosts share
// this machine's kernel, one on this machine. Its starter closes it.
type Session struct {
	run    *rundir.Run
	fleet  *remote.Fleet
	rig    Rig
	agents map[string]*agent.Client
	clocks *clocks
	topics int // made so far in this session: their names differ

	residue []string // topics that could not be deleted
}

// Rig is what a session measures on.
type Rig struct {
	Name     string
	State    int // n of rigs/<rig>/<n>
	Hosts    []rundir.Host
	Prepared *rundir.Prepared
	Limits   *rundir.Limits
}

// Open starts an agent on every host.
func Open(ctx context.Context, run *rundir.Run, f *remote.Fleet, rig Rig) (*Session, error) {
	s := &Session{run: run, fleet: f, rig: rig, agents: map[string]*agent.Client{}}
	names := make([]string, 0, len(rig.Hosts)+1)
	for _, h := range rig.Hosts {
		names = append(names, h.Name)
	}
	if s.lab() {
		names = append(names, machine)
	}
	var mu sync.Mutex
	err := f.Each(ctx, names, func(ctx context.Context, name string, c *remote.Conn) error {
		path, err := s.agentPath(name)
		if err != nil {
			return err
		}
		started, err := agent.Start(ctx, runner(c), path)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s.agents[name] = started
		return nil
	})
	if err == nil {
		s.clocks, err = s.newClocks(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("starting agents: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

// lab tells whether hosts live on this machine, which is then collected too.
func (s *Session) lab() bool {
	return slices.ContainsFunc(s.rig.Hosts, func(h rundir.Host) bool { return h.Lab })
}

// agentPath is where krig-agent is on a host; on this machine it is krig's own.
func (s *Session) agentPath(name string) (string, error) {
	for _, p := range s.rig.Prepared.Hosts {
		if p.Name == name {
			return p.Agent, nil
		}
	}
	if name != machine {
		return "", errors.New("the host was not prepared")
	}
	return agent.Program(runtime.GOARCH)
}

// runner runs the agent by a host's connection, as root.
func runner(c *remote.Conn) agent.Runner {
	return func(ctx context.Context, argv []string, stdin io.Reader, stdout, stderr io.Writer) error {
		return c.Exec(ctx, remote.Cmd{Argv: argv, Become: true, Stdin: stdin, Stdout: stdout, Stderr: stderr})
	}
}

// gone tells whether an agent has ended.
func gone(c *agent.Client) bool {
	select {
	case <-c.Ended():
		return true
	default:
		return false
	}
}

// Close ends all agents.
func (s *Session) Close() error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for name, a := range s.agents {
		wg.Go(func() {
			dead := gone(a) // and its end was told where it mattered
			if err := a.Close(); err != nil && !dead {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, fmt.Errorf("%s: ending the agent: %w", name, err))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// hosts are the rig's hosts that hold a role, in order.
func (s *Session) hosts(role rundir.Role) []rundir.Host {
	var out []rundir.Host
	for _, h := range s.rig.Hosts {
		if h.Has(role) {
			out = append(out, h)
		}
	}
	return out
}

// host is one of the rig's hosts by name.
func (s *Session) host(name string) (rundir.Host, bool) {
	for _, h := range s.rig.Hosts {
		if h.Name == name {
			return h, true
		}
	}
	return rundir.Host{}, false
}

// prepared is what is known of a host since its preparation.
func (s *Session) prepared(name string) rundir.PreparedHost {
	for _, p := range s.rig.Prepared.Hosts {
		if p.Name == name {
			return p
		}
	}
	return rundir.PreparedHost{Name: name}
}

// report says a line of progress.
func (s *Session) report(format string, args ...any) {
	s.run.Report(rundir.Event{Stage: "bench", Message: fmt.Sprintf(format, args...)})
}
