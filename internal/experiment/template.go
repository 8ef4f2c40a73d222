package experiment

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

//go:embed template
var templates embed.FS

// Template is a commented experiment to start from, which passes [Load] as it
// is, once what [TemplateFiles] gives lies beside it. The names are lab and
// module.
func Template(name string) ([]byte, error) {
	text, err := templates.ReadFile("template/" + name + ".yaml")
	if err == nil {
		return text, nil
	}
	var known []string
	entries, err := templates.ReadDir("template")
	for _, e := range entries {
		if base, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			known = append(known, base)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the templates: %w", err)
	}
	return nil, fmt.Errorf("there is no template %q; known: %s", name, strings.Join(known, ", "))
}

// TemplateFiles are the files that a template names, by their paths relative to
// it; without such, none.
func TemplateFiles(name string) (map[string][]byte, error) {
	out := map[string][]byte{}
	root := path.Join("template", name)
	if _, err := fs.Stat(templates, root); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	err := fs.WalkDir(templates, root, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		out[strings.TrimPrefix(at, root+"/")], err = templates.ReadFile(at)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the files of template %s: %w", name, err)
	}
	return out, nil
}
