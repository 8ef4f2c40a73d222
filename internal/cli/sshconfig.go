package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh/knownhosts"

	"krig/internal/rundir"
)

// sshTarget is what the host is called in the configuration for ssh.
const sshTarget = "host"

// sshConfig writes into dir what ssh needs to reach a host and the jump hosts
// before it, each with its own key and host keys, and nothing of the user's
// configuration. It returns the file to be given with -F, in which the host is
// called sshTarget.
func sshConfig(dir string, run *rundir.Run, s *rundir.SSH) (string, error) {
	var b strings.Builder
	for name, n := sshTarget, 1; s != nil; s, n = s.Jump, n+1 {
		known := filepath.Join(dir, "known_hosts_"+name)
		if err := os.WriteFile(known, []byte(knownHosts(s)), 0o600); err != nil {
			return "", err
		}
		lines := [][2]string{
			{"HostName", s.Address}, {"Port", fmt.Sprint(cmp.Or(s.Port, 22))}, {"User", s.User},
			{"UserKnownHostsFile", escape(known)},
		}
		lines = append(lines, identityLines(run, s)...)
		fmt.Fprintf(&b, "Host %s\n", name)
		name = fmt.Sprintf("jump%d", n)
		if s.Jump != nil {
			fmt.Fprintf(&b, "  ProxyJump %s\n", name) // ssh would keep the quotes
		}
		for _, l := range lines {
			if strings.ContainsAny(l[1], "\"\n\r\x00") || strings.Contains(l[1], "${") {
				return "", fmt.Errorf("%s %q cannot be written down for ssh", l[0], l[1])
			}
			fmt.Fprintf(&b, "  %s \"%s\"\n", l[0], l[1])
		}
	}
	b.WriteString("Host *\n  StrictHostKeyChecking yes\n  GlobalKnownHostsFile none\n  PreferredAuthentications publickey\n")
	path := filepath.Join(dir, "config")
	return path, os.WriteFile(path, []byte(b.String()), 0o600)
}

// identityLines give ssh the one key that a host takes, or the agent's.
func identityLines(run *rundir.Run, s *rundir.SSH) [][2]string {
	var out [][2]string
	if s.KeyFile == "" {
		out = [][2]string{{"IdentityFile", "none"}}
	} else {
		path := s.KeyFile
		if !filepath.IsAbs(path) {
			path = run.Path(path)
		}
		out = [][2]string{{"IdentityFile", escape(path)}, {"IdentitiesOnly", "yes"}}
	}
	if !s.Agent {
		out = append(out, [2]string{"IdentityAgent", "none"})
	}
	return out
}

// escape keeps ssh from expanding a path.
func escape(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// knownHosts are the pinned keys of a host in the form of a known_hosts file.
func knownHosts(s *rundir.SSH) string {
	address := knownhosts.Normalize(fmt.Sprintf("[%s]:%d", s.Address, cmp.Or(s.Port, 22)))
	var b strings.Builder
	for _, key := range slices.Sorted(slices.Values(s.HostKey)) {
		fmt.Fprintf(&b, "%s %s\n", address, strings.TrimSpace(key))
	}
	return b.String()
}
