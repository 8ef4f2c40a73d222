package infra_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/infra/lab"
	"krig/infra/lab/labtest"
	"krig/infra/tool"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

// sevenHosts is a rig of seven, three of them with disks.
var sevenHosts = labtest.Spec{Brokers: 3, Controllers: 1, Workers: 3, DiskSize: 64 << 20}

// BenchmarkRigUpDown is the time in which seven lab hosts come and go, by each
// engine. Directly at most twice the time is wanted that a shell takes for the
// same podman commands side by side; through terraform at most that of direct
// and twice what the tool takes for seven empty resources.
func BenchmarkRigUpDown(b *testing.B) {
	labtest.Need(b)
	b.Setenv("KRIG_SCOPE", fmt.Sprintf("BenchmarkRigUpDown-%d", time.Now().UnixNano()))
	shell := newShellRig(b)
	var direct, shells, stacks, empty time.Duration
	program, err := tool.Terraform(b.Context(), os.Getenv(tool.Env))
	if err != nil {
		b.Logf("terraform is left out: %v", err)
	}
	for b.Loop() {
		direct += upDown(b, "direct")
		shells += shell.upDown(b)
		if program.Path != "" {
			stacks += upDown(b, "terraform")
			empty += sevenEmpty(b, program.Path)
		}
	}
	n := float64(b.N)
	b.ReportMetric(direct.Seconds()/n, "s/direct")
	b.ReportMetric(shells.Seconds()/n, "s/shell")
	b.ReportMetric(direct.Seconds()/shells.Seconds(), "direct/shell")
	if program.Path != "" {
		b.ReportMetric(stacks.Seconds()/n, "s/terraform")
		b.ReportMetric(empty.Seconds()/n, "s/empty")
		b.ReportMetric(stacks.Seconds()/(direct+2*empty).Seconds(), "terraform/(direct+2*empty)")
	}
}

// withEngine is a cell for the spec's rig by an engine.
func withEngine(s labtest.Spec, engine string) *experiment.Cell {
	c := s.Cell()
	c.Rig.Engine = engine
	return c
}

// upDown makes the rig and takes it down.
func upDown(b *testing.B, engine string) time.Duration {
	run, err := rundir.Create(b.TempDir(), "updown", time.Now())
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	run.Listen(func(e rundir.Event) { b.Logf("%5.2f s %s %s", time.Since(begun).Seconds(), e.Host, e.Message) })
	_, err = infra.Apply(b.Context(), run, infra.Want{Cell: withEngine(sevenHosts, engine), Expiry: time.Now().Add(time.Hour)})
	up := time.Since(begun)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), 2*time.Minute)
	defer cancel()
	err = errors.Join(err, infra.Destroy(ctx, run))
	took := time.Since(begun)
	if err = errors.Join(err, run.Close()); err != nil {
		b.Fatal(err)
	}
	b.Logf("%s: up %v, down %v", engine, up.Round(time.Millisecond), (took - up).Round(time.Millisecond))
	return took
}

// toolEnv keeps this machine's own configuration of the tool, and its questions
// to the network, out.
func toolEnv() []string {
	return append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE=/dev/null")
}

// sevenEmpty is how long the tool alone takes for seven resources.
func sevenEmpty(b *testing.B, program string) time.Duration {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("resource \"terraform_data\" \"r\" {\n  count = 7\n}\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	for _, args := range [][]string{{"init"}, {"apply", "-auto-approve"}, {"destroy", "-auto-approve"}} {
		cmd := exec.CommandContext(b.Context(), program, append(args, "-input=false", "-no-color")...)
		cmd.Dir, cmd.Env = dir, toolEnv()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s %s: %v\n%s", program, args[0], err, out)
		}
	}
	return time.Since(begun)
}

// A shellRig does in a shell what krig did for a rig: the same commands of
// podman, with disks and the wait for sshd.
type shellRig struct{ prepare, script string }

// newShellRig makes a rig with a podman on PATH that writes down what it is
// called with, keeps the hosts' keys, and takes the rig down again.
func newShellRig(b *testing.B) shellRig {
	real, err := exec.LookPath("podman")
	if err != nil {
		b.Fatal(err)
	}
	bin, said, kept := b.TempDir(), b.TempDir(), b.TempDir()
	wrapper := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\0' \"$@\" >\"$(mktemp %s/XXXXXXXX)\"\nexec %s \"$@\"\n", said, real)
	if err := os.WriteFile(filepath.Join(bin, "podman"), []byte(wrapper), 0o755); err != nil {
		b.Fatal(err)
	}
	path := os.Getenv("PATH")
	b.Setenv("PATH", bin+":"+path)
	defer b.Setenv("PATH", path)
	run, err := rundir.Create(b.TempDir(), "shell", time.Now())
	if err != nil {
		b.Fatal(err)
	}
	defer run.Close()
	hosts, err := infra.Apply(b.Context(), run, infra.Want{Cell: sevenHosts.Cell(), Expiry: time.Now().Add(time.Hour)})
	labDir, derr := lab.Dir()
	dir := filepath.Join(labDir, "krig-"+run.Short)
	if err = errors.Join(err, derr); err == nil {
		_, err = bash(b, "cd "+dir+" && cp -a --parents */ssh containers.conf "+kept)
	}
	if err = errors.Join(err, infra.Destroy(context.WithoutCancel(b.Context()), run)); err != nil {
		b.Fatal(err)
	}
	return shellRig{prepare: "mkdir -p " + dir + " && cp -a " + kept + "/. " + dir + "\n", script: script(b, said, dir, run.Short, hosts)}
}

// script is the loop, and the way back.
func script(b *testing.B, said, dir, short string, hosts []rundir.Host) string {
	var s strings.Builder
	fmt.Fprintf(&s, "set -e\nexport CONTAINERS_CONF=%s/containers.conf\n", dir)
	s.WriteString(`up() { until { exec 3<>/dev/tcp/$1/22 && read -t 10 -u 3 line; } 2>/dev/null; do sleep 0.02; done; }` + "\n")
	calls := podmanCalls(b, said)
	s.WriteString(calls["network"][0] + "\n")
	var names []string
	for _, h := range hosts {
		names = append(names, "krig-"+short+"-"+h.Name)
		i := slices.IndexFunc(calls["run"], func(c string) bool { return strings.Contains(c, " '"+names[len(names)-1]+"' ") })
		fmt.Fprintf(&s, "(\nmkdir -p %[1]s/%[2]s/{opt,var}{,.work}\n", dir, h.Name)
		call := calls["run"][i]
		for _, d := range h.Disks {
			fmt.Fprintf(&s, "fallocate -l %d %s\ndev=$(losetup --find --show --direct-io=on %[2]s)\n", d.Size, d.ID)
			call = strings.ReplaceAll(call, "'"+d.Device+"'", "$dev")
		}
		fmt.Fprintf(&s, "%s\nup %s\n) &\n", call, h.Internal)
	}
	s.WriteString("wait\npodman rm --force --time 0 " + strings.Join(names, " ") + "\n")
	for _, h := range hosts {
		for _, d := range h.Disks {
			fmt.Fprintf(&s, "losetup --detach $(losetup --noheadings --output NAME -j %s)\n", d.ID)
		}
	}
	return s.String() + "podman network rm krig-" + short + "\nrm -rf " + dir + "\n"
}

// podmanCalls are podman's commands by their first word, quoted, without what
// shows the hosts lxcfs' figures: the shell starts none.
func podmanCalls(b *testing.B, said string) map[string][]string {
	files, err := filepath.Glob(filepath.Join(said, "*"))
	if err != nil {
		b.Fatal(err)
	}
	out := map[string][]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		argv := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
		if verb := strings.Join(argv[:2], " "); argv[0] != "run" && verb != "network create" {
			continue
		}
		line := "podman"
		for i := 0; i < len(argv); i++ {
			if argv[i] == "--volume" && strings.Contains(argv[i+1], "/lxcfs/") {
				i++
				continue
			}
			line += " '" + strings.ReplaceAll(argv[i], "'", `'\''`) + "'"
		}
		out[argv[0]] = append(out[argv[0]], line)
	}
	return out
}

func (s shellRig) upDown(b *testing.B) time.Duration {
	if out, err := bash(b, s.prepare); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	begun := time.Now()
	out, err := bash(b, s.script)
	took := time.Since(begun)
	if err != nil {
		b.Fatalf("the shell's rig: %v: %s\n%s", err, out, s.script)
	}
	b.Logf("shell: %v", took.Round(time.Millisecond))
	return took
}

func bash(b *testing.B, script string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}
