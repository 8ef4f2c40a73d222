//go:build clouds

package infra_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/infra/lab/labtest"
	"krig/infra/stack"
	"krig/internal/rundir"
)

// hand is a user with a directory, a terraform and the lab's module.
type hand struct {
	program, dir string
}

// byHand writes a main.tf that calls the module, and begins.
func byHand(t *testing.T, body string) hand {
	t.Helper()
	h := hand{needTerraform(t).Path, t.TempDir()}
	h.write(t, body)
	h.run(t, "init", "-input=false")
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if out, err := h.try("destroy", "-auto-approve"); err != nil {
			t.Logf("destroying: %v\n%s", err, out)
		}
	})
	return h
}

func (h hand) write(t *testing.T, body string) {
	t.Helper()
	module, err := filepath.Abs("terraform/lab")
	if err != nil {
		t.Fatal(err)
	}
	text := "module \"lab\" {\n source = \"" + module + "\"\n krig = \"" + os.Args[0] + "\"\n" + body + "\n}\noutput \"lab\" {\n value = module.lab\n}\n"
	if err := os.WriteFile(filepath.Join(h.dir, "main.tf"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (h hand) try(args ...string) (string, error) {
	cmd := exec.Command(h.program, append(args, "-no-color")...)
	cmd.Dir, cmd.Env = h.dir, toolEnv()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (h hand) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := h.try(args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// output is the module's.
func (h hand) output(t *testing.T) (hosts json.RawMessage, run *rundir.Run) {
	t.Helper()
	cmd := exec.Command(h.program, "output", "-json", "lab")
	cmd.Dir, cmd.Env = h.dir, toolEnv()
	data, err := cmd.Output()
	var told struct {
		Hosts json.RawMessage
		Run   string
	}
	if err == nil {
		err = json.Unmarshal(data, &told)
	}
	if err == nil {
		run, err = rundir.Open(told.Run)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	t.Cleanup(func() { run.Close() })
	return told.Hosts, run
}

// Applied by hand the module makes a run of its own, whose hosts krig knows,
// until it is destroyed, by terraform or by krig.
func TestLabModuleByHand(t *testing.T) {
	needTerraform(t)
	labtest.Scope(t)
	const hosts = "hosts = {\n b1 = { disk = { size = 33554432 } }\n c1 = {}\n w1 = { cpus = 0.5 }\n}\n"
	h := byHand(t, hosts)
	h.run(t, "apply", "-auto-approve")
	told, run := h.output(t)
	cell := labtest.Spec{Brokers: 1, Controllers: 1, Workers: 1, DiskSize: 32 << 20}.Cell()
	before, err := stack.Decode(told, cell, rundir.SSH{KeyFile: filepath.Join("infra", "lab", "client_key")})
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range before {
		if got := on(t, run, host, "hostname"); got != host.Name {
			t.Errorf("%s calls itself %s", host.Name, got)
		}
	}
	if out := h.run(t, "plan", "-detailed-exitcode"); !strings.Contains(out, "No changes") {
		t.Errorf("planned again:\n%s", out)
	}
	expires(t, run, 24*time.Hour)
	h.write(t, hosts+"keep = \"1h30m\"")
	h.run(t, "apply", "-auto-approve")
	expires(t, run, 90*time.Minute)
	if after, err := stack.Decode(must(h.output(t)), cell, rundir.SSH{}); err != nil || !after[0].Same(before[0]) || !after[2].Same(before[2]) {
		t.Errorf("kept longer, %+v are %+v (%v)", before, after, err)
	}
	h.run(t, "destroy", "-auto-approve")
	nothing(t, run.Dir)

	h.run(t, "apply", "-auto-approve")
	_, run = h.output(t)
	down(t, run.Dir)
	nothing(t, run.Dir)
	h.run(t, "destroy", "-auto-approve")
	nothing(t, run.Dir)
}

func must(hosts json.RawMessage, _ *rundir.Run) json.RawMessage { return hosts }

// expires sees that all that stands of a run is kept for so long.
func expires(t *testing.T, run *rundir.Run, after time.Duration) {
	t.Helper()
	found, err := infra.Find(t.Context(), infra.Label{Run: run.Short, Scope: os.Getenv("KRIG_SCOPE")})
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, l := range found {
		left := time.Until(l.Expiry)
		if l.Hold != rundir.HoldKept || l.May || left > after || left < after-5*time.Minute {
			t.Errorf("expected to be kept for %v: %+v", after, l)
		}
	}
}

// What cannot be made is refused before anything is.
func TestLabModuleRefuses(t *testing.T) {
	h := byHand(t, "hosts = {}")
	if out, err := exec.Command(h.program, "fmt", "-check", "-diff", "terraform/lab").CombinedOutput(); err != nil {
		t.Errorf("fmt: %v\n%s", err, out)
	}
	h.run(t, "validate")
	for body, want := range map[string]string{
		"hosts = { B1 = {} }":                                          "A host's name is a small letter",
		"hosts = { b1 = { memory = -1 } }":                             "whole numbers, 0 or more",
		"hosts = { b1 = { disk = { size = 1.5 } } }":                   "whole numbers, 0 or more",
		"hosts = { b1 = { disk = {} } }":                               "size",
		"hosts = { b1 = { cpus = -0.5 } }":                             "cpus is 0 (not limited) or more",
		"hosts = { b1 = { role = \"king\" } }":                         "role is broker, controller or worker",
		"hosts = { b1 = { disk = { size = 1, profile = \"tape\" } } }": "disk.profile is none, ssd, hdd or custom",
		"hosts = {}\nrig = \"a b\"":                                    "A rig's name",
		"hosts = {}\nkeep = \"tomorrow\"":                              "keep is a time such as 24h",
		"hosts = {}\nkeep = \"0h\"":                                    "keep is a time such as 24h",
		"hosts = {}\nrun = \"runs/x\"":                                 "run is an absolute path",
	} {
		h.write(t, body)
		out, err := h.try("plan", "-input=false")
		if err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("%s: %v, want %q in\n%s", body, err, want, out)
		}
	}
}
