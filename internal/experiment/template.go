package experiment

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed template/*.yaml
var templates embed.FS

// Template is a commented experiment to start from, which passes [Load] as it
// is. The one name is lab.
func Template(name string) ([]byte, error) {
	text, err := templates.ReadFile("template/" + name + ".yaml")
	if err == nil {
		return text, nil
	}
	var known []string
	entries, err := templates.ReadDir("template")
	for _, e := range entries {
		known = append(known, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the templates: %w", err)
	}
	return nil, fmt.Errorf("there is no template %q; known: %s", name, strings.Join(known, ", "))
}
