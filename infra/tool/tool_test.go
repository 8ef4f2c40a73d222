package tool

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// write writes a program that runs the lines of shell given.
func write(t *testing.T, path, lines string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// machine is one with nothing on PATH (bin) and nothing built (tools).
func machine(t *testing.T) (bin, tools string) {
	t.Helper()
	bin, tools = t.TempDir(), t.TempDir()
	t.Setenv("PATH", bin)
	t.Setenv("KRIG_TOOLS_DIR", tools)
	return bin, tools
}

const (
	tofu      = "echo OpenTofu v1.8.2; echo on linux_amd64"
	terraform = "echo Terraform v1.11.4"
	tooOld    = "echo Terraform v1.4.6"
	absent    = "echo tofu is not installed >&2; exit 3"
)

func TestTerraformIsChosen(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string // below bin/ or tools/
		want  string
		notes string
	}{
		"tofu before terraform":        {map[string]string{"bin/tofu": tofu, "bin/terraform": terraform}, "bin/tofu opentofu 1.8.2", ""},
		"terraform":                    {map[string]string{"bin/terraform": terraform}, "bin/terraform terraform 1.11.4", ""},
		"PATH before what was built":   {map[string]string{"bin/terraform": terraform, "tools/tofu/1.8.2/bin/tofu": tofu}, "bin/terraform terraform 1.11.4", ""},
		"a placeholder is passed over": {map[string]string{"bin/tofu": absent, "bin/terraform": terraform}, "bin/terraform terraform 1.11.4", "passed over: BIN/tofu cannot run: exit status 3: tofu is not installed"},
		"too old is passed over":       {map[string]string{"bin/terraform": tooOld, "tools/tofu/1.8.2/bin/tofu": tofu}, "tools/tofu/1.8.2/bin/tofu opentofu 1.8.2", "passed over: BIN/terraform is terraform 1.4.6: too old, at least 1.5.0 is needed"},
		"the newest built": {map[string]string{
			"tools/tofu/1.8.2/bin/tofu": tofu, "tools/tofu/1.10.0/bin/tofu": "echo OpenTofu v1.10.0",
			"tools/tofu/building/bin/tofu": "echo OpenTofu v9.9.9",
		}, "tools/tofu/1.10.0/bin/tofu opentofu 1.10.0", ""},
		"built as another": {map[string]string{
			"tools/tofu/1.8.2/bin/tofu": tofu, "tools/tofu/1.10.0/bin/tofu": "echo OpenTofu v1.9.0",
		}, "tools/tofu/1.8.2/bin/tofu opentofu 1.8.2", "passed over: TOOLS/tofu/1.10.0/bin/tofu is opentofu 1.9.0: built as 1.10.0: run `make tools` again"},
		"warnings are kept": {map[string]string{"bin/tofu": "echo Warning: no file >&2; " + tofu}, "bin/tofu opentofu 1.8.2", "BIN/tofu: Warning: no file"},
	} {
		t.Run(name, func(t *testing.T) {
			bin, tools := machine(t)
			places := strings.NewReplacer(bin, "BIN", tools, "TOOLS")
			for path, lines := range c.files {
				place, rest, _ := strings.Cut(path, "/")
				write(t, filepath.Join(map[string]string{"bin": bin, "tools": tools}[place], rest), lines)
			}
			p, err := Terraform(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			path := strings.ToLower(places.Replace(p.Path))
			if got := path + " " + string(p.Product) + " " + p.Version; got != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
			if got := places.Replace(strings.Join(p.Notes, "\n")); got != c.notes {
				t.Errorf("notes %q, want %q", got, c.notes)
			}
		})
	}
}

func TestTerraformNamed(t *testing.T) {
	bin, _ := machine(t)
	write(t, bin+"/tofu", tofu)
	named := write(t, t.TempDir()+"/mine", terraform)
	p, err := Terraform(t.Context(), named)
	if err != nil || p.Path != named || p.Product != TerraformCLI {
		t.Errorf("named %s: %+v, %v", named, p, err)
	}
	noProgram := t.TempDir() + "/text"
	if err := os.WriteFile(noProgram, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for named, want := range map[string]string{
		write(t, t.TempDir()+"/x", absent):       "X cannot run: exit status 3: tofu is not installed",
		write(t, t.TempDir()+"/x", tooOld):       "X is terraform 1.4.6: too old, at least 1.5.0 is needed",
		write(t, t.TempDir()+"/x", "echo hello"): `X: neither terraform's nor tofu's version is in what it answers: "hello"`,
		noProgram:                                "X cannot run: fork/exec X: exec format error",
		"/no/such/tofu":                          `exec: "X": stat X: no such file or directory`,
	} {
		p, err := Terraform(t.Context(), named)
		if err == nil {
			t.Errorf("%s: fell back to %s", named, p.Path)
			continue
		}
		if got := strings.ReplaceAll(err.Error(), named, "X"); got != "KRIG_TERRAFORM: "+want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNone(t *testing.T) {
	bin, _ := machine(t)
	_, err := Terraform(t.Context(), "")
	if want := "no terraform and no tofu: `make tools` builds tofu, or install terraform 1.5 or tofu 1.6, or later"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	write(t, bin+"/terraform", tooOld)
	_, err = Terraform(t.Context(), "")
	if want := "; passed over: " + bin + "/terraform is terraform 1.4.6: too old, at least 1.5.0 is needed"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want it to end with %s", err, want)
	}
	_, err = Pulumi(t.Context())
	if want := "no pulumi: `make tools` builds it, or install 3.130 or later"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestPulumiIsChosen(t *testing.T) {
	bin, tools := machine(t)
	built := write(t, tools+"/pulumi/3.276.0/bin/pulumi", `test "$PULUMI_HOME" = /dev/null && echo 3.276.0`) // else it logs there
	write(t, bin+"/pulumi", "echo v3.129.0")
	p, err := Pulumi(t.Context())
	if err != nil || p.Path != built || p.Root != tools+"/pulumi/3.276.0" || len(p.Notes) != 1 {
		t.Errorf("pulumi on PATH is too old: %+v, %v", p, err)
	}
	onPath := write(t, bin+"/pulumi", "echo v3.130.0")
	p, err = Pulumi(t.Context())
	if err != nil || p.Path != onPath || p.Root != "" {
		t.Errorf("pulumi on PATH will do: %+v, %v", p, err)
	}
}

// TestNoAnswer: a program that hangs ends with everything it started, and so
// does one that never stops talking.
func TestNoAnswer(t *testing.T) {
	_, _ = machine(t)
	s := terraforms()
	s.limit = 300 * time.Millisecond
	pidFile := t.TempDir() + "/pid"
	hangs := write(t, t.TempDir()+"/x", "PATH=/bin:/usr/bin; sleep 1000 & echo $! >"+pidFile+"; wait")
	began := time.Now()
	_, err := s.ask(t.Context(), candidate{path: hangs})
	if err == nil || !strings.Contains(err.Error(), "no answer within 300ms") || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	pid, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	if !gone(t, strings.TrimSpace(string(pid))) {
		t.Errorf("process %s, which it started, goes on", pid)
	}
	out, _, err := run(t.Context(), s.limit, nil, "/usr/bin/yes")
	if err == nil || !strings.Contains(err.Error(), "no answer within 300ms") || out != "" {
		t.Errorf("a program that talks on: %v", err)
	}
}

// TestHead: of a program that says much only the beginning is kept.
func TestHead(t *testing.T) {
	t.Parallel()
	path := write(t, t.TempDir()+"/x", "echo first; head -c 5000000 /dev/zero")
	out, _, err := run(t.Context(), time.Minute, nil, path)
	if err != nil || len(out) != headSize || !strings.HasPrefix(out, "first\n") {
		t.Errorf("%d bytes kept, %v", len(out), err)
	}
}

// gone waits for a process that was killed to disappear, or to be a zombie.
func gone(t *testing.T, pid string) bool {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

func TestCancelled(t *testing.T) {
	bin, tools := machine(t)
	write(t, bin+"/tofu", tofu)
	write(t, tools+"/tofu/1.8.2/bin/tofu", tofu)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := Terraform(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestDir(t *testing.T) {
	t.Setenv("KRIG_TOOLS_DIR", "")
	t.Setenv("HOME", "/home/u")
	if d, err := Dir(); err != nil || d != "/home/u/.cache/krig/tools" {
		t.Errorf("%s, %v", d, err)
	}
	t.Setenv("HOME", "")
	t.Setenv("PATH", t.TempDir())
	_, err := Pulumi(t.Context())
	if err == nil || !strings.Contains(err.Error(), "set KRIG_TOOLS_DIR") {
		t.Errorf("without a home: %v", err)
	}
}

// TestReal asks what is really there, without what PATH has.
func TestReal(t *testing.T) {
	t.Setenv("PATH", "")
	for name, ask := range map[string]func(context.Context) (Program, error){
		"tofu":   func(ctx context.Context) (Program, error) { return Terraform(ctx, "") },
		"pulumi": Pulumi,
	} {
		t.Run(name, func(t *testing.T) {
			if all, err := builds(name); err != nil || len(all) == 0 {
				t.Skipf("%s was not built: make tools (%v)", name, err)
			}
			p, err := ask(t.Context())
			if err != nil || filepath.Base(p.Root) != p.Version || !slices.Contains([]Product{OpenTofu, PulumiCLI}, p.Product) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}
