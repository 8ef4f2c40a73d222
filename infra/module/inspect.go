package module

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
)

// declared is what the files of a module declare, as far as krig must know.
type declared struct {
	variables map[string]variable
	outputs   map[string]bool
	backend   string   // the kind of its own back end: s3, cloud, ...; "" when it has none
	workspace string   // the one workspace that the back end names; "" when runs may have their own
	outside   []string // sources of modules that lie outside of the directory
}

// A variable is one of a module's.
type variable struct {
	set  bool   // it has a default, or a value in a .tfvars file that the tool reads by itself
	auto string // the .auto.tfvars file that gives it a value
	kind string // its type where that is one word: string, number, bool, any; else ""
}

// noModule says that a directory has no Terraform in it.
type noModule struct{ dir string }

func (e noModule) Error() string { return e.dir + " has no .tf files" }

// inspect reads the Terraform files of a directory, as the tool would: those
// of its top alone. It runs nothing.
func inspect(dir string) (declared, error) {
	d := declared{variables: map[string]variable{}, outputs: map[string]bool{}}
	files, err := filesOf(dir)
	if err != nil {
		return d, err
	}
	p := hclparse.NewParser()
	for _, name := range files.code {
		if err := d.code(p, filepath.Join(dir, name)); err != nil {
			return d, err
		}
	}
	for _, name := range files.values {
		if err := d.values(p, filepath.Join(dir, name)); err != nil {
			return d, err
		}
	}
	return d, nil
}

// files are the names of a module's files that the tool reads by itself.
type files struct{ code, values []string }

func filesOf(dir string) (files, error) {
	var f files
	entries, err := os.ReadDir(dir)
	if err != nil {
		return f, err
	}
	for _, e := range entries {
		name := e.Name()
		base := strings.TrimSuffix(name, ".json")
		switch {
		case e.IsDir() || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~"):
		case strings.HasSuffix(base, ".tf"):
			f.code = append(f.code, name)
		case base == "terraform.tfvars" || strings.HasSuffix(base, ".auto.tfvars"):
			f.values = append(f.values, name)
		}
	}
	if len(f.code) == 0 {
		return f, noModule{dir}
	}
	return f, nil
}

func parse(p *hclparse.Parser, path string) (hcl.Body, error) {
	read := p.ParseHCLFile
	if strings.HasSuffix(path, ".json") {
		read = p.ParseJSONFile
	}
	file, said := read(path)
	if err := wrong(said); err != nil {
		return nil, err
	}
	return file.Body, nil
}

// wrong is what a parser complained of: its first error.
func wrong(said hcl.Diagnostics) error {
	for _, d := range said {
		if d.Severity != hcl.DiagError {
			continue
		}
		if d.Subject == nil {
			return errors.New(d.Summary + ": " + d.Detail)
		}
		return fmt.Errorf("%s:%d: %s: %s", d.Subject.Filename, d.Subject.Start.Line, d.Summary, d.Detail)
	}
	return nil
}

// code takes in one file of the module.
func (d *declared) code(p *hclparse.Parser, path string) error {
	body, err := parse(p, path)
	if err != nil {
		return err
	}
	content, _, said := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
		{Type: "variable", LabelNames: []string{"name"}}, {Type: "output", LabelNames: []string{"name"}},
		{Type: "module", LabelNames: []string{"name"}}, {Type: "terraform"},
	}})
	if err := wrong(said); err != nil {
		return err
	}
	for _, b := range content.Blocks {
		switch b.Type {
		case "variable":
			d.variable(b)
		case "output":
			d.outputs[b.Labels[0]] = true
		case "module":
			d.module(b)
		case "terraform":
			d.settings(b)
		}
	}
	return nil
}

// attributes are those of a block that are named; what else is wrong with it is
// the tool's to say.
func attributes(b *hcl.Block, names ...string) hcl.Attributes {
	var schema hcl.BodySchema
	for _, n := range names {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: n})
	}
	content, _, _ := b.Body.PartialContent(&schema)
	return content.Attributes
}

// variable takes a declaration in; an override file adds to an earlier one.
func (d *declared) variable(b *hcl.Block) {
	v := d.variables[b.Labels[0]]
	for name, a := range attributes(b, "type", "default") {
		if name == "default" {
			v.set = true
		} else {
			v.kind = hcl.ExprAsKeyword(a.Expr)
			if text := textOf(a); text != "" { // as .tf.json writes it
				v.kind = text
			}
		}
	}
	d.variables[b.Labels[0]] = v
}

// module notes a source that a copy of the directory does not hold.
func (d *declared) module(b *hcl.Block) {
	if a := attributes(b, "source")["source"]; a != nil {
		source := textOf(a)
		if strings.HasPrefix(source, ".") && !filepath.IsLocal(source) {
			d.outside = append(d.outside, source)
		}
	}
}

// settings takes in the back end of a terraform block.
func (d *declared) settings(b *hcl.Block) {
	content, _, _ := b.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "backend", LabelNames: []string{"kind"}}, {Type: "cloud"}}})
	for _, end := range content.Blocks {
		d.backend = "cloud"
		if len(end.Labels) > 0 {
			d.backend = end.Labels[0]
		}
		inner, _, _ := end.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "workspaces"}}})
		for _, w := range inner.Blocks {
			if a := attributes(w, "name")["name"]; a != nil {
				d.workspace = textOf(a)
			}
		}
	}
}

// textOf is the value of an attribute that is a plain text, or "".
func textOf(a *hcl.Attribute) string {
	v, said := a.Expr.Value(nil)
	if said.HasErrors() || !v.IsKnown() || v.IsNull() || v.Type().FriendlyName() != "string" {
		return ""
	}
	return v.AsString()
}

// values takes in which variables a .tfvars file sets.
func (d *declared) values(p *hclparse.Parser, path string) error {
	body, err := parse(p, path)
	if err != nil {
		return err
	}
	all, said := body.JustAttributes()
	for name := range all {
		if v, ok := d.variables[name]; ok {
			v.set = true
			if strings.Contains(filepath.Base(path), ".auto.") {
				v.auto = filepath.Base(path)
			}
			d.variables[name] = v
		}
	}
	return wrong(said)
}

// names are the variables, sorted.
func (d *declared) names() []string {
	var out []string
	for name := range d.variables {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
