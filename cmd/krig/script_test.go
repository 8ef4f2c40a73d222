package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"krig/infra"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"krig": main})
}

// The scripts run the real program, each in a directory of its own with no
// runs in it. Those in testdata/script touch nothing of this machine.
func TestCommands(t *testing.T) {
	testscript.Run(t, params("testdata/script", func(env *testscript.Env) error {
		env.Setenv("KRIG_SCOPE", scope())
		return nil
	}))
}

// Those in testdata/lab make lab hosts, and leave none.
func TestCommandsInTheLab(t *testing.T) {
	needLab(t)
	agents := buildAgents(t)
	testscript.Run(t, params("testdata/lab", func(env *testscript.Env) error {
		mine := scope()
		env.Setenv("KRIG_SCOPE", mine)
		env.Setenv("KRIG_AGENT_DIR", agents)
		env.Setenv("HOME", os.Getenv("HOME")) // krig's cache, Maven's and Go's
		env.Defer(func() { nothingStands(t, mine) })
		return nil
	}))
}

// Who is not root is told so before anything is touched.
func TestWithoutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run a program as somebody else")
	}
	dir := open(t, t.TempDir())
	for name, from := range map[string]string{"krig": mustFind(t, "krig"), "smoke.yaml": "../../examples/smoke.yaml"} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"run smoke.yaml", 2, "krig does not run as root, which the lab's containers, links and disks need; run it with sudo"},
		{"up smoke.yaml", 2, "krig does not run as root"},
		{"doctor", 1, "krig does not run as root"},
		{"gc", 1, "run it with sudo"},
		{"down --all --yes", 1, "run it with sudo"},
		{"down k3f9ab", 1, "run it with sudo"},
		{"plan smoke.yaml", 0, "estimated time: "},
	} {
		cmd := exec.Command("./krig", strings.Fields(tc.args)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "KRIG_SCOPE="+scope())
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := cmd.CombinedOutput() // the code below tells
		if got := cmd.ProcessState.ExitCode(); got != tc.code || !strings.Contains(string(out), tc.want) {
			t.Errorf("krig %s: exit code %d, not %d, with\n%s\nwhich must hold %q", tc.args, got, tc.code, out, tc.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "runs")); err == nil {
		t.Error("a run directory was made")
	}
}

// open lets everybody write below a test's directory.
func open(t *testing.T, dir string) string {
	for d, mode := dir, os.FileMode(0o777); d != os.TempDir() && d != "/"; d, mode = filepath.Dir(d), 0o755 {
		if err := os.Chmod(d, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mustFind(t *testing.T, program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Every example passes the check and has a plan.
func TestExamplesHaveAPlan(t *testing.T) {
	for _, file := range examples(t) {
		out, err := exec.Command("krig", "plan", file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), "estimated time: ") {
			t.Errorf("krig plan %s: %v\n%s", file, err, out)
		}
	}
}

// So does the experiment that README.md shows.
func TestReadmeHasAPlan(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("README.md shows no experiment")
	}
	file := filepath.Join(t.TempDir(), "readme.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("krig", "plan", file).CombinedOutput(); err != nil {
		t.Errorf("krig plan: %v\n%s", err, out)
	}
}

// examples are the experiments that ship with krig.
func examples(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir("../../examples", func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".yaml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("examples: %q, %v", files, err)
	}
	return files
}

// needLab skips a test where no lab can be had, and fails it in CI.
func needLab(t *testing.T) {
	t.Helper()
	lacks := infra.Check(t.Context(), nil)
	if len(lacks) == 0 {
		return
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("no lab on this machine: %v", lacks)
	}
	t.Skipf("no lab on this machine: %v", lacks)
}

func params(dir string, setup func(*testscript.Env) error) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		Setup:               setup,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"interrupt": interrupt,
			"logged":    logged,
			"chmod":     chmod,
		},
	}
}

// scope is a KRIG_SCOPE that no other test has.
func scope() string { return "script" + strconv.FormatInt(time.Now().UnixNano(), 36) }

// exits runs a program and wants exactly this exit code: exits CODE PROGRAM ARG...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG...")
	}
	code := 0
	err := ts.Exec(args[1], args[2:]...)
	var status *exec.ExitError
	if errors.As(err, &status) {
		code = status.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("%s exited %d, not %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// interrupt starts a program, waits until the log of a run holds a text, sends
// so many SIGINT, and wants exit code 130: interrupt TIMES TEXT PROGRAM ARG...
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt TIMES TEXT PROGRAM ARG...")
	}
	times, err := strconv.Atoi(args[0])
	ts.Check(err)
	earlier, err := filepath.Glob(ts.MkAbs("runs/*/krig.log"))
	ts.Check(err)
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "KRIG_SCOPE="+ts.Getenv("KRIG_SCOPE"), "KRIG_AGENT_DIR="+ts.Getenv("KRIG_AGENT_DIR"))
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Start())
	found := awaitLog(ts.MkAbs("runs/*/krig.log"), earlier, args[1])
	for range times {
		ts.Check(cmd.Process.Signal(os.Interrupt))
		time.Sleep(300 * time.Millisecond) // two at once would be one
	}
	var status *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &status) || status.ExitCode() != 130 {
		ts.Fatalf("%s: %v, not exit code 130", strings.Join(args[2:], " "), err)
	}
	if !found {
		ts.Fatalf("the log never held %q", args[1])
	}
}

// logged waits until the log of a run holds a text: logged TEXT
func logged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: logged TEXT")
	}
	if !awaitLog(ts.MkAbs("runs/*/krig.log"), nil, args[0]) {
		ts.Fatalf("no log ever held %q", args[0])
	}
}

// awaitLog waits until a file of the pattern, not one of the earlier ones, holds a text.
func awaitLog(pattern string, earlier []string, text string) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); <-tick.C {
		files, _ := filepath.Glob(pattern) // well formed
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err == nil && !slices.Contains(earlier, f) && strings.Contains(string(data), text) {
				return true
			}
		}
	}
	return false
}

// chmod sets a file's mode: chmod 600 FILE
func chmod(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: chmod MODE FILE")
	}
	mode, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	ts.Check(os.Chmod(ts.MkAbs(args[1]), os.FileMode(mode)))
}

// buildAgents builds krig-agent for this machine, as make build does.
func buildAgents(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "krig-agent-linux-"+arch), "krig/cmd/krig-agent")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("building krig-agent: %v\n%s", err, out)
		}
	}
	if err := os.Symlink("krig-agent-linux-"+runtime.GOARCH, filepath.Join(dir, "krig-agent")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// nothingStands removes what a script left, and fails the test if it did.
func nothingStands(t *testing.T, scope string) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	found, err := infra.Find(ctx, infra.Label{Scope: scope})
	if err == nil && len(found) > 0 {
		t.Errorf("the script left %s", fmt.Sprint(found))
		err = infra.Remove(ctx, found)
	}
	if err != nil {
		t.Error(err)
	}
}
