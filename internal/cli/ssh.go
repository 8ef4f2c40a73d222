package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"krig/internal/remote"
	"krig/internal/rundir"
)

// sshCmd opens a shell on a host, or runs one command on several.
func (a *app) sshCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "ssh RUN HOST|ROLE [-- COMMAND...]",
		GroupID: groupRun,
		Short:   "A shell on a host, or one command on all hosts of a role",
		Long: `Open a shell on a host of a rig that stands, by this machine's ssh with the
run's own key and host keys. With a command, run it and print its output; given a
role (broker, controller, worker or all) instead of a host, run it on all of
them side by side and print the output host by host.`,
		Example: `  krig ssh last b1
  krig ssh last broker -- df -h
  krig ssh last b2 -- sh -c 'tail -n 20 /tmp/*.log'`,
		Args: args(func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 && dash != 2 {
				return fmt.Errorf("RUN and HOST come before --, the command after it")
			} else if dash == 2 && len(args) > 2 {
				return nil
			}
			return takes(2, 2)(cmd, args)
		}),
		ValidArgsFunction: a.completeRunHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.ssh(cmd.Context(), args[0], args[1], args[2:])
		},
	}
}

func (a *app) ssh(ctx context.Context, name, who string, command []string) error {
	run, all, err := a.standing(name)
	if err != nil {
		return err
	}
	chosen := choose(all, who)
	switch {
	case len(chosen) == 0:
		return usage(fmt.Errorf("run %s has no host and no role %q; it has %s", run.ID, who, strings.Join(hostNames(all), ", ")))
	case len(command) > 0:
		return a.onAll(ctx, run, chosen, command)
	case len(chosen) > 1:
		return usage(fmt.Errorf("a shell is for one host: %s", strings.Join(hostNames(chosen), ", ")))
	}
	return a.shell(ctx, run, chosen[0])
}

// choose finds the hosts that a name or a role means.
func choose(all []rundir.Host, who string) []rundir.Host {
	var out []rundir.Host
	for _, h := range all {
		if h.Name == who || who == "all" || h.Has(rundir.Role(strings.TrimSuffix(who, "s"))) {
			out = append(out, h)
		}
	}
	return out
}

func hostNames(hosts []rundir.Host) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = h.Name
	}
	return out
}

// onAll runs a command on hosts side by side. One host's output passes through
// as it comes; that of several is printed in the hosts' order, each below its name.
func (a *app) onAll(ctx context.Context, run *rundir.Run, hosts []rundir.Host, argv []string) error {
	fleet := remote.NewFleet(run.Dir)
	fleet.Add(hosts...)
	said := map[string]*output{}
	for _, h := range hosts {
		said[h.Name] = &output{}
	}
	err := fleet.Each(ctx, hostNames(hosts), func(ctx context.Context, name string, c *remote.Conn) error {
		cmd := remote.Cmd{Argv: argv, Stdout: said[name], Stderr: said[name]}
		if len(hosts) == 1 {
			cmd.Stdout, cmd.Stderr = a.Out, a.Err
		}
		return c.Exec(ctx, cmd)
	})
	if len(hosts) > 1 {
		for _, h := range hosts {
			_, werr := fmt.Fprintf(a.Out, "== %s\n%s", h.Name, said[h.Name].text.String())
			err = errors.Join(err, werr)
		}
	}
	return errors.Join(err, fleet.Close())
}

// output gathers what one host prints on both streams.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// shell runs this machine's ssh on a host. The host's own exit status is the
// user's affair; ssh's own failure is krig's.
func (a *app) shell(ctx context.Context, run *rundir.Run, h rundir.Host) error {
	dir, err := os.MkdirTemp("", "krig-ssh-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config, err := sshConfig(dir, run, &h.SSH)
	if err != nil {
		return fmt.Errorf("ssh to %s: %w", h.Name, err)
	}
	cmd := exec.CommandContext(ctx, "ssh", "-F", config, sshTarget)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	err = cmd.Run()
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() != 255 {
		return nil
	}
	if errors.Is(err, exec.ErrNotFound) {
		return hint(errors.New("this machine has no ssh"), "apt-get install -y openssh-client")
	}
	if err != nil {
		return fmt.Errorf("ssh to %s: %w", h.Name, err)
	}
	return nil
}
