package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Module is a directory of the user's own Terraform that makes a rig's
// hosts. What it must declare and give out stands in infra/module/README.md.
type Module struct {
	Path      string    `yaml:"path" json:"path" doc:"directory of your Terraform module, relative to this file; krig works in a copy" required:"true"`
	Variables Values    `yaml:"variables" json:"variables,omitempty" doc:"what the module's variables get; a secret is {env: NAME} or {file: PATH}, read when it is needed"`
	Finder    string    `yaml:"finder" json:"finder" doc:"who can be asked what of the rig stands; none: only the module's own state knows" default:"none" enum:"none"`
	SSH       ModuleSSH `yaml:"ssh" json:"ssh" doc:"how krig logs in on the module's hosts"`
}

// ModuleSSH is how krig logs in on the hosts of a module: by a private key's
// file, the user's ssh-agent, or both, the file first.
type ModuleSSH struct {
	User    string `yaml:"user" json:"user,omitempty" doc:"login user of hosts for which the module's output names none; it needs root by sudo without a password"`
	KeyFile string `yaml:"key_file" json:"key_file,omitempty" doc:"private key without a passphrase, relative to this file; ~/ is your home directory"`
	Agent   bool   `yaml:"agent" json:"agent,omitempty" doc:"ask your ssh-agent for keys"`
}

// Values are named values of any form.
type Values map[string]Value

// A Value is any value of the file as JSON: compact, keys sorted, numbers as
// they were written.
type Value string

// A Secret says where a secret is read from when it is needed: the
// environment variable Env, or the File of this machine. One of the two is set.
type Secret struct{ Env, File string }

// Secret tells whether the value as a whole is a map with the one key env or
// file, and what it names.
func (v Value) Secret() (Secret, bool) {
	var m map[string]any
	if json.Unmarshal([]byte(v), &m) != nil || len(m) != 1 {
		return Secret{}, false
	}
	env, isEnv := m["env"].(string)
	file, isFile := m["file"].(string)
	return Secret{env, file}, isEnv || isFile
}

// Any is the value decoded; numbers are [json.Number].
func (v Value) Any() (any, error) {
	d := json.NewDecoder(strings.NewReader(string(v)))
	d.UseNumber()
	var out any
	err := d.Decode(&out)
	return out, err
}

// MarshalJSON gives the value itself.
func (v Value) MarshalJSON() ([]byte, error) {
	if v == "" {
		return []byte("null"), nil
	}
	return []byte(v), nil
}

// UnmarshalJSON takes any JSON.
func (v *Value) UnmarshalJSON(data []byte) error {
	x, err := Value(data).Any()
	if err == nil {
		*v, err = valueOf(x)
	}
	return err
}

func valueOf(x any) (Value, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(x)
	return Value(strings.TrimSuffix(b.String(), "\n")), err
}

const freeForm = "a map from names to values of any form; {env: NAME} or {file: PATH} for a secret"

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// variableName is how Terraform lets variables be named.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// free reads a map from names to values of any form.
func (r *reader) free(n *yaml.Node, v reflect.Value, at place) {
	out := make(Values)
	r.pairs(n, at, func(k, val *yaml.Node) {
		here := at.child(k.Value)
		switch {
		case !variableName.MatchString(k.Value):
			r.refuse(k, here, refusal{reason: quoted(k.Value) + " cannot be a variable's name", expected: "letters, digits, _ and -"})
			return
		case isNull(val):
			r.refuse(val, here, refusal{reason: "has no value", expected: `a value; "" for an empty text, nothing at all for the variable's default`})
			return
		}
		before := len(r.found.list)
		x, err := valueOf(r.any(val, here))
		if err != nil {
			r.refuse(val, here, refusal{reason: "cannot be passed on: " + err.Error()})
		}
		if len(r.found.list) == before {
			out[k.Value] = x
		}
	})
	v.Set(reflect.ValueOf(out))
}

// any is a node's value. Numbers stay as written, and what is neither a number,
// true, false nor null is text.
func (r *reader) any(n *yaml.Node, at place) any {
	switch n.Kind {
	case yaml.AliasNode:
		r.refuse(n, at, aliased(n))
	case yaml.MappingNode:
		out := map[string]any{}
		r.pairs(n, at, func(k, val *yaml.Node) { out[k.Value] = r.any(val, at) })
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, r.any(item, at))
		}
		return out
	}
	return plain(n)
}

// plain is the value of a scalar.
func plain(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		if jsonNumber.MatchString(n.Value) {
			return json.Number(n.Value)
		}
		if wholePattern.MatchString(n.Value) {
			return json.Number(strings.ReplaceAll(n.Value, "_", ""))
		}
	}
	return n.Value
}

// free takes the rest of a path as the name of a value.
func (t *target) free(rest []string) *refusal {
	at := strings.Join(t.steps, ".")
	if len(rest) != 1 || !variableName.MatchString(rest[0]) {
		return &refusal{reason: "names no single value", expected: at + ".NAME"}
	}
	t.steps = append(t.steps, rest[0])
	t.field = field{key: rest[0], typ: reflect.TypeFor[string]()}
	return nil
}

// locatedModule makes the paths of a module absolute: they are relative to the file.
func (f *File) locatedModule(m Module) (Module, error) {
	m.Path, m.SSH.KeyFile = f.beside(m.Path), f.beside(m.SSH.KeyFile)
	var variables Values
	for name, v := range m.Variables {
		if variables == nil {
			variables = Values{}
		}
		if ref, ok := v.Secret(); ok && ref.File != "" {
			var err error
			if v, err = valueOf(map[string]string{"file": f.beside(ref.File)}); err != nil {
				return m, fmt.Errorf("variable %s: %w", name, err)
			}
		}
		variables[name] = v
	}
	m.Variables = variables
	return m, nil
}

// modulePaths calls add for the scalars that are paths of a rig's module.
func modulePaths(rig *yaml.Node, add func(*yaml.Node)) {
	m := child(rig, "module")
	add(child(m, "path"))
	add(child(child(m, "ssh"), "key_file"))
	variables := child(m, "variables")
	if variables == nil || variables.Kind != yaml.MappingNode {
		return
	}
	for i := 1; i < len(variables.Content); i += 2 {
		v := variables.Content[i]
		if file := child(v, "file"); file != nil && len(v.Content) == 2 && file.Kind == yaml.ScalarNode {
			if _, text := plain(file).(string); text {
				add(file)
			}
		}
	}
}

// isModulePath tells whether the steps of a target lead to a path of a module.
func isModulePath(steps []string) bool {
	const rig = 2 // rigs, NAME
	return len(steps) > rig && steps[0] == "rigs" &&
		slices.Contains([]string{"module.path", "module.ssh.key_file"}, strings.Join(steps[rig:], "."))
}

// Directories lists the directories of this machine that the run works from,
// absolute and sorted: modules. A run takes a copy of each.
func (f *File) Directories() []string {
	var out []string
	for _, c := range f.plan.Cells {
		if c.Rig.Module.Path != "" {
			out = append(out, c.Rig.Module.Path)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// refuseIdleModules refuses a module's keys on a rig of which no cell can be a module's.
func (f *File) refuseIdleModules() {
	for _, name := range f.names.rigs {
		rig := child(child(f.root, "rigs"), name)
		provider := child(rig, "provider")
		if k := keyNode(rig, "module"); k != nil && provider != nil && provider.Value != "module" && !f.isVaried("rigs."+name+".provider") {
			f.problems.add(f.origin.refuse(k, "rigs."+name+".module", refusal{reason: "is for provider module, and this rig's is " + quoted(provider.Value), expected: "provider: module"}))
		}
	}
}

// given are the variables that krig passes by itself.
func given() []string { return []string{"krig_tags", "krig_hosts"} }

// checkModule checks the keys of a module as far as the file tells.
func checkModule(c *Cell) []Problem {
	m := c.Rig.Module
	if c.Rig.Provider != "module" {
		return nil
	}
	if m.Path == "" {
		return []Problem{{Path: "module", Reason: "is missing", Expected: "module: {path: DIRECTORY, ssh: {key_file: FILE}}"}}
	}
	var out []Problem
	if missing(m.Path, true) {
		out = append(out, Problem{Path: "module.path", Reason: "there is no directory " + m.Path, Expected: "a directory with your Terraform module"})
	}
	if m.SSH.KeyFile == "" && !m.SSH.Agent {
		out = append(out, Problem{Path: "module.ssh", Reason: "names no key to log in with", Expected: "ssh: {key_file: FILE} or ssh: {agent: true}"})
	}
	for _, name := range given() {
		if _, ok := m.Variables[name]; ok {
			out = append(out, Problem{Path: "module.variables." + name, Reason: "krig passes it by itself", Expected: "nothing here"})
		}
	}
	return out
}

// checkOwn refuses keys of a pool that its provider does not have.
func checkOwn(pool string) func(*Cell) []Problem {
	return func(c *Cell) []Problem {
		if p := c.Rig.pool(pool); p.On == "" {
			return notOwn(reflect.ValueOf(p), pool, c.Rig.Provider)
		}
		return nil
	}
}

func notOwn(v reflect.Value, at, provider string) []Problem {
	var out []Problem
	for _, f := range fields(v.Type()) {
		here, sub := at+"."+f.key, v.Field(f.index)
		switch {
		case shapeOf(f.typ) == group:
			out = append(out, notOwn(sub, here, provider)...)
		case len(f.only) > 0 && !slices.Contains(f.only, provider) && !sub.IsZero():
			out = append(out, Problem{Path: here, Reason: "krig sets it on hosts of provider " + strings.Join(f.only, " and ") + " alone: the hosts of provider " + provider + " are as they come",
				Expected: "nothing here: what makes the hosts says it"})
		}
	}
	return out
}
