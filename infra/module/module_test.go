package module_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"krig/infra/module"
	"krig/internal/experiment"
	"krig/internal/rundir"
)

const (
	tags   = "variable \"krig_tags\" { type = map(string) }\n"
	output = "output \"hosts\" { value = [] }\n"
)

// cellOf is a cell of a rig on a module of these files.
func cellOf(t *testing.T, files map[string]string, values experiment.Values) *experiment.Cell {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "net")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return &experiment.Cell{RigName: "own", Kafka: experiment.Kafka{Mode: "kraft"}, Rig: experiment.Rig{
		Provider: "module", Brokers: experiment.Pool{Count: 3}, Workers: experiment.Pool{Count: 2},
		Module: experiment.Module{Path: dir, Variables: values}}}
}

func refused(t *testing.T, files map[string]string, values experiment.Values) []string {
	t.Helper()
	c := cellOf(t, files, values)
	var out []string
	for _, p := range (module.Provider{}).Refuse(c) {
		out = append(out, strings.ReplaceAll(p.Path+": "+p.Reason+"; "+p.Expected, c.Rig.Module.Path, "DIR"))
	}
	return out
}

func TestRefuse(t *testing.T) {
	const noTags = `rigs.own.module.path: the module declares no variable krig_tags; variable "krig_tags" { type = map(string) }, and its tags on everything; see infra/module/README.md`
	const noHosts = `rigs.own.module.path: the module has no output hosts; output "hosts", by which krig knows the hosts; see infra/module/README.md`
	for _, tt := range []struct {
		name   string
		files  map[string]string
		values experiment.Values
		want   []string
	}{
		{"all that must be", map[string]string{"main.tf": tags + output}, nil, nil},
		{"in several files, and JSON", map[string]string{"a.tf.json": `{"variable":{"krig_tags":{},"n":{"type":"number"}}}`, "b.tf": output}, experiment.Values{"n": "1"}, nil},
		{"no directory's files", map[string]string{"README.md": "x"}, nil, []string{"rigs.own.module.path: DIR has no .tf files; a directory with a Terraform module at its top"}},
		{"nothing", map[string]string{"main.tf": ""}, nil, []string{noTags, noHosts}},
		{"not HCL", map[string]string{"main.tf": "variable {{"}, nil,
			[]string{"rigs.own.module.path: the module cannot be read: DIR/main.tf:1: Argument or block definition required: An argument or block definition is required here.; files that terraform validate accepts"}},
		{"a variable that nobody declares", map[string]string{"main.tf": tags + output + `variable "region" { default = "a" }`}, experiment.Values{"regoin": `"b"`},
			[]string{"rigs.own.module.variables.regoin: the module declares no variable regoin; region"}},
		{"a variable without a value", map[string]string{"main.tf": tags + output + `variable "region" {}`}, nil,
			[]string{"rigs.own.module: the module's variable region has no default and gets no value; variables: {region: VALUE}"}},
		{"values of its own", map[string]string{"main.tf": tags + output + "variable \"a\" {}\nvariable \"b\" {}\nvariable \"c\" {}", "terraform.tfvars": "a = 1\n", "x.auto.tfvars.json": `{"b": 2}`, "other.tfvars": "c = 1"}, nil,
			[]string{"rigs.own.module: the module's variable c has no default and gets no value; variables: {c: VALUE}"}},
		{"values in two places", map[string]string{"main.tf": tags + output + "variable \"a\" {}", "z.auto.tfvars": "a = 1\n"}, experiment.Values{"a": "2"},
			[]string{"rigs.own.module.variables.a: the module's z.auto.tfvars gives it a value too; a value in one place"}},
		{"a default in an override", map[string]string{"main.tf": tags + output + `variable "a" { type = string }`, "override.tf": `variable "a" { default = "x" }`}, nil, nil},
		{"krig_hosts needs no default", map[string]string{"main.tf": tags + output + `variable "krig_hosts" {}`}, nil, nil},
		{"one workspace for all", map[string]string{"main.tf": tags + output + "terraform {\n cloud {\n  workspaces { name = \"prod\" }\n }\n}\n"}, nil,
			[]string{"rigs.own.module.path: the module's back end cloud names the one workspace prod; workspaces by tags or a prefix: each run has one of its own"}},
		{"workspaces by tags", map[string]string{"main.tf": tags + output + "terraform {\n cloud {\n  workspaces { tags = [\"krig\"] }\n }\n}\n"}, nil, nil},
		{"what a copy would not hold", map[string]string{"main.tf": tags + output + `module "m" { source = "../common" }` + "\n" + `module "n" { source = "./inside" }`}, nil,
			[]string{"rigs.own.module.path: the module uses ../common, which lies outside of its directory, and krig copies the directory alone; a source inside of it, or one of a registry or a repository"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := refused(t, tt.files, tt.values); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// newRun makes a run directory.
func newRun(t *testing.T) *rundir.Run {
	t.Helper()
	run, err := rundir.Create(t.TempDir(), "t", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	})
	return run
}

func TestInput(t *testing.T) {
	t.Setenv("A_SECRET", "hush\n")
	secret := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(secret, []byte("quiet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := cellOf(t, map[string]string{
		"main.tf":           tags + output + "variable \"krig_hosts\" {}\nvariable \"version\" { type = string }\nterraform {\n backend \"s3\" {}\n}\n",
		"terraform.tfstate": "another run's",
	}, experiment.Values{"version": "3.10", "n": "3.10", "list": `[1,{"env":"A_SECRET"}]`, "token": `{"env":"A_SECRET"}`, "pw": experiment.Value(`{"file":"` + secret + `"}`)})
	run := newRun(t)
	in, err := module.Provider{}.Input(context.Background(), run, c, rundir.Label{Run: run.Short, Owner: "1:2:x", Hold: rundir.HoldRun, Expiry: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"krig_tags":  map[string]string{"krig-run": run.Short, "krig-owner": "1:2:x", "krig-hold": "run", "krig-expiry": "2026-12-01T00:00:00Z"},
		"krig_hosts": map[string]int{"brokers": 3, "controllers": 0, "workers": 2},
		"version":    "3.10", "n": json.Number("3.10"), "list": []any{json.Number("1"), map[string]any{"env": "A_SECRET"}}, "token": "hush\n", "pw": "quiet",
	}
	if !reflect.DeepEqual(in.Vars, want) {
		t.Errorf("variables %v", in.Vars)
	}
	if in.Workspace != "krig-"+run.Short+"-own" || in.Place.String() != "module" {
		t.Errorf("workspace %q, place %q", in.Workspace, in.Place)
	}
	files, err := os.ReadDir(in.Module)
	if err != nil || len(files) != 1 || !strings.HasPrefix(in.Module, run.Path("inputs")) {
		t.Errorf("the copy %s has %v (%v)", in.Module, files, err)
	}
	bare := cellOf(t, map[string]string{"main.tf": tags + output}, nil)
	in, err = module.Provider{}.Input(context.Background(), run, bare, rundir.Label{Scope: "s"})
	if err != nil || in.Workspace != "" || !slices.Equal(slices.Collect(maps.Keys(in.Vars)), []string{"krig_tags"}) || in.Vars["krig_tags"].(map[string]string)["krig-scope"] != "s" {
		t.Errorf("without a back end: %+v, %v", in, err)
	}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	t.Setenv("SSH_AUTH_SOCK", "")
	dir := t.TempDir()
	noKey := filepath.Join(dir, "id")
	if err := os.WriteFile(noKey, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := cellOf(t, map[string]string{"main.tf": tags + output}, experiment.Values{"a": `{"env":"KRIG_NO_SUCH"}`, "b": `{"file":"/no/such"}`, "c": `"plain"`})
	c.Rig.Module.SSH = experiment.ModuleSSH{KeyFile: noKey, Agent: true}
	if err := os.Symlink("/etc", filepath.Join(c.Rig.Module.Path, "etc")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range (module.Provider{}).Check(context.Background(), []*experiment.Cell{c, c}) {
		if l.Path != "" { // whether a tool is there is the machine's
			got = append(got, l.Path+": "+l.What)
		}
	}
	want := []string{
		"rigs.own.module.variables.a: the environment variable KRIG_NO_SUCH is not set",
		"rigs.own.module.variables.b: reading a secret: open /no/such: no such file or directory",
		"rigs.own.module.ssh.agent: no ssh-agent is there: SSH_AUTH_SOCK is not set",
		"rigs.own.module.ssh.key_file: the private key cannot be read: ssh: no key found",
		"rigs.own.module.path: " + c.Rig.Module.Path + "/etc is neither a file nor a directory of its own: a copy would not hold it",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestHostsRefusesWhatIsNoContract(t *testing.T) {
	c := cellOf(t, map[string]string{"main.tf": tags + output}, nil)
	_, err := module.Provider{}.Hosts(context.Background(), newRun(t), c, json.RawMessage(`[{"name":"b1"}]`))
	if err == nil || !strings.Contains(err.Error(), "gave what is not krig's contract: output hosts: host b1: role: is missing") {
		t.Errorf("got %v", err)
	}
}

func FuzzRefuse(f *testing.F) {
	f.Add(tags+output, "a = 1")
	f.Add("terraform {\n backend \"s3\" {\n  workspaces { name = 1 }\n }\n}\nmodule \"a\" { source = null }\nvariable \"a\" { type = list(string) }", "a = [")
	f.Fuzz(func(t *testing.T, code, values string) {
		refused(t, map[string]string{"main.tf": code, "terraform.tfvars": values}, experiment.Values{"a": "1"})
	})
}
