package experiment_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"krig/internal/experiment"
)

// moduleRig is an experiment on a module, whose directory it makes.
func moduleRig(t *testing.T, more string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "net")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return "version: 1\nname: t\nrigs:\n  own:\n    provider: module\n    brokers: {count: 3}\n    workers: {count: 1}\n" +
		"    module:\n      path: " + dir + "\n      ssh: {key_file: id}\n" + more
}

const load10s = "bench:\n  duration: 10s\n"

func TestModuleHasNoneOfTheLabsDefaults(t *testing.T) {
	text := moduleRig(t, "") + load10s
	f, plan := good(t, text)
	c := plan.Cells[0]
	if c.Rig.Engine != "terraform" || c.Rig.Module.Finder != "none" {
		t.Errorf("engine %q, finder %q", c.Rig.Engine, c.Rig.Module.Finder)
	}
	if want := (experiment.Pool{Count: 3}); c.Rig.Brokers != want {
		t.Errorf("brokers are %+v", c.Rig.Brokers)
	}
	if got := f.Directories(); len(got) != 1 || filepath.Base(got[0]) != "net" {
		t.Errorf("directories %q", got)
	}
	effective, again := rerun(t, f)
	if !reflect.DeepEqual(plan, again) {
		t.Errorf("another plan of\n%s", effective)
	}
	_, labs := good(t, minimal)
	if r := labs.Cells[0].Rig; r.Engine != "direct" || r.Brokers.Memory != 2<<30 || r.Brokers.Disk.Size != 8<<30 || r.Brokers.Disk.Profile != "none" {
		t.Errorf("a rig of the lab is %+v", r)
	}
}

func TestVariablesKeepTheirForm(t *testing.T) {
	for _, tt := range []struct{ written, want string }{
		{"text", `"text"`}, {"'3'", `"3"`}, {"3", "3"}, {"3.10", "3.10"}, {"2_000", "2000"}, {"-1e3", "-1e3"},
		{"007", `"007"`}, {"0x1f", `"0x1f"`}, {"true", "true"}, {"2026-01-02", `"2026-01-02"`}, {".nan", `".nan"`},
		{"<a&b>", `"<a&b>"`}, {"[1, a, {b: null}]", `[1,"a",{"b":null}]`}, {"{z: 1, a: [x]}", `{"a":["x"],"z":1}`}, {"{}", "{}"},
		{"123456789012345678901", "123456789012345678901"}, {"{env: TOKEN}", `{"env":"TOKEN"}`}, {"{file: /etc/x}", `{"file":"/etc/x"}`},
	} {
		f, plan := good(t, moduleRig(t, "      variables: {v: "+tt.written+"}\n")+load10s)
		v := plan.Cells[0].Rig.Module.Variables["v"]
		if string(v) != tt.want {
			t.Errorf("%s is %s, want %s", tt.written, v, tt.want)
		}
		if _, again := rerun(t, f); !reflect.DeepEqual(plan, again) {
			t.Errorf("%s: the effective file gives %v", tt.written, again.Cells[0].Rig.Module.Variables)
		}
		indented, err := json.MarshalIndent(plan, "", "  ")
		var read experiment.Plan
		if err != nil || json.Unmarshal(indented, &read) != nil || !reflect.DeepEqual(read.Cells[0].Rig.Module, plan.Cells[0].Rig.Module) {
			t.Errorf("%s: read back from plan.json as %v (%v)", tt.written, read.Cells, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	for _, tt := range []struct {
		value experiment.Value
		want  experiment.Secret
		is    bool
	}{
		{`{"env":"A"}`, experiment.Secret{Env: "A"}, true},
		{`{"file":"/a"}`, experiment.Secret{File: "/a"}, true},
		{`{"env":"A","file":"b"}`, experiment.Secret{}, false},
		{`{"env":1}`, experiment.Secret{}, false},
		{`"env"`, experiment.Secret{}, false},
		{`{}`, experiment.Secret{}, false},
	} {
		if got, is := tt.value.Secret(); got != tt.want || is != tt.is {
			t.Errorf("%s: %+v, %v", tt.value, got, is)
		}
	}
}

func TestModulePathsAreAbsolute(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	text := strings.Replace(moduleRig(t, "      variables: {pw: {file: pw.txt}}\n")+load10s, "key_file: id", "key_file: ~/.ssh/id", 1)
	f, plan := good(t, text)
	m := plan.Cells[0].Rig.Module
	if m.SSH.KeyFile != "/home/me/.ssh/id" {
		t.Errorf("key file %s", m.SSH.KeyFile)
	}
	if s, _ := m.Variables["pw"].Secret(); !filepath.IsAbs(s.File) || filepath.Base(s.File) != "pw.txt" {
		t.Errorf("secret's file %s", s.File)
	}
	if effective, _ := rerun(t, f); !strings.Contains(effective, "key_file: /home/me/.ssh/id") {
		t.Errorf("the effective file is\n%s", effective)
	}
}

func TestVariablesAreAxes(t *testing.T) {
	text := moduleRig(t, "      variables: {size: small}\n") + load10s + "matrix: {module.variables.size: [small, large, null]}\n"
	_, plan := good(t, text)
	if len(plan.Cells) != 3 || plan.Cells[1].Rig.Module.Variables["size"] != `"large"` || plan.Cells[2].Rig.Module.Variables != nil {
		t.Fatalf("cells %+v", plan.Cells)
	}
	other := *plan.Cells[0]
	other.Rig.Module.Path += "2"
	if tr := experiment.Between(plan.Cells[0], &other); !tr.Anew {
		t.Errorf("between two modules: %+v", tr)
	}
	if tr := experiment.Between(plan.Cells[0], plan.Cells[1]); !tr.Infra || tr.Anew || !reflect.DeepEqual(tr.Paths, []string{"rigs.own.module.variables.size"}) {
		t.Errorf("between two sizes: %+v", tr)
	}
}

func TestProviderAndEngineAreAxes(t *testing.T) {
	text := moduleRig(t, "") + load10s + "matrix: {\"provider, engine, brokers.memory\": [[lab, direct, 3GiB], [lab, terraform, 3GiB], [module, terraform, null]]}\n"
	f, plan := good(t, text)
	if len(plan.Cells) != 3 {
		t.Fatalf("%d cells", len(plan.Cells))
	}
	lab, own := plan.Cells[0].Rig, plan.Cells[2].Rig
	if lab.Module.Path != "" || lab.Brokers.Memory != 3<<30 || lab.Brokers.Disk.Size != 8<<30 {
		t.Errorf("in the lab: %+v", lab)
	}
	if own.Module.Path == "" || own.Brokers != (experiment.Pool{Count: 3}) {
		t.Errorf("by the module: %+v", own)
	}
	if tr := experiment.Between(plan.Cells[1], plan.Cells[2]); !tr.Anew {
		t.Errorf("between providers: %+v", tr)
	}
	if effective, again := rerun(t, f); !reflect.DeepEqual(plan, again) {
		t.Errorf("another plan of\n%s", effective)
	}
}

func TestModuleRefuses(t *testing.T) {
	const alone = "krig sets it on hosts of provider lab alone: the hosts of provider module are as they come; expected nothing here: what makes the hosts says it"
	for _, tt := range []struct{ name, old, new, want string }{
		{"a directory that is not there", "/net\n", "/nat\n", "rigs.own.module.path: there is no directory "},
		{"no key", "ssh: {key_file: id}", "ssh: {user: me}", "rigs.own.module.ssh: names no key to log in with; expected ssh: {key_file: FILE} or ssh: {agent: true}"},
		{"a finder to come", "ssh:", "finder: aws\n      ssh:", `rigs.own.module.finder: "aws" is not built yet`},
		{"a finder of no kind", "ssh:", "finder: azure\n      ssh:", `rigs.own.module.finder: "azure" is not known; expected none`},
		{"krig's own variable", "ssh:", "variables: {krig_tags: {}}\n      ssh:", "rigs.own.module.variables.krig_tags: krig passes it by itself"},
		{"a variable without a value", "ssh:", "variables: {a: }\n      ssh:", "rigs.own.module.variables.a: has no value"},
		{"no variable's name", "ssh:", "variables: {a b: 1}\n      ssh:", `rigs.own.module.variables.a b: "a b" cannot be a variable's name`},
		{"one key twice in a value", "ssh:", "variables: {a: {b: 1, b: 2}}\n      ssh:", "rigs.own.module.variables.a.b: written twice"},
		{"memory", "count: 3", "count: 3, memory: 1GiB", "rigs.own.brokers.memory: " + alone},
		{"cpus", "count: 3", "count: 3, cpus: 2", "rigs.own.brokers.cpus: " + alone},
		{"profile", "count: 3", "count: 3, disk: {profile: ssd}", "rigs.own.brokers.disk.profile: " + alone},
		{"write", "count: 3", "count: 3, disk: {size: 8GiB, write: 1MiB/s}", "rigs.own.brokers.disk.write: " + alone},
		{"link", "count: 3", "count: 3, network: {rate: 1gbit}", "rigs.own.brokers.network.rate: " + alone},
		{"a rig of the lab", "provider: module", "provider: lab", `rigs.own.module: is for provider module, and this rig's is "lab"; expected provider: module`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, got := load(t, edit(t, moduleRig(t, "")+load10s, tt.old, tt.new))
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	_, got := load(t, "version: 1\nname: t\nrigs:\n  own: {provider: module, brokers: {count: 1}, workers: {count: 1}}\n"+load10s)
	if len(got) != 1 || !strings.Contains(got[0], "rigs.own.module: is missing; expected module: {path: DIRECTORY") {
		t.Errorf("got %q", got)
	}
}

func TestModuleTemplate(t *testing.T) {
	text, err := experiment.Template("module")
	if err != nil {
		t.Fatal(err)
	}
	files, err := experiment.TemplateFiles("module")
	if err != nil || len(files) != 1 || !strings.Contains(string(files["rig/main.tf"]), `output "hosts"`) {
		t.Fatalf("its files are %v, %v", files, err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "rig"), 0o755); err != nil {
		t.Fatal(err)
	}
	changed := edit(t, string(text), "path: rig", "path: "+filepath.Join(dir, "rig"))
	for _, comment := range []string{"disk: {size: 100GiB}", "module.variables.prefix: [a, b]", "token: {env: MY_TOKEN}", "agent: true", "user: debian"} {
		changed = edit(t, changed, "# "+comment, comment)
	}
	_, plan := good(t, changed)
	if len(plan.Cells) != 4 {
		t.Errorf("%d cells", len(plan.Cells))
	}
	if err := validate(t, compiled(t), changed); err != nil {
		t.Errorf("the schema refuses it: %v", err)
	}
	if none, err := experiment.TemplateFiles("lab"); err != nil || len(none) > 0 {
		t.Errorf("the lab's files are %v, %v", none, err)
	}
}
