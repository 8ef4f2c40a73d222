package experiment

import (
	"fmt"
	"reflect"
	"strings"
)

// Reference is every key of the file in Markdown, made from the same tags
// that the reader uses.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# The experiment file, key by key

This page is made from krig's own types. ` + "`krig schema`" + ` prints the same for editors.
A change between two cells costs what stands under *costs*: nothing but the next repeat (live, client, topic),
a new cluster (cluster), preparing the hosts again (prepare), or new hosts (infra).

`)
	section(&b, "Top level", reflect.TypeFor[Experiment](), "", "")
	return b.String()
}

// section writes the table of one group of keys, then those of the groups in it.
func section(b *strings.Builder, title string, t reflect.Type, at, cost string) {
	fmt.Fprintf(b, "## %s\n\n| key | what | value | default | costs |\n|---|---|---|---|---|\n", title)
	for _, f := range fields(t) {
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", f.key, cellText(f.doc+mark(f)), cellText(brief(f)), defaultText(f), costOf(f, cost))
	}
	b.WriteString("\n")
	done := make(map[reflect.Type]bool)
	for _, f := range fields(t) {
		sub, path := f.typ, strings.TrimPrefix(at+"."+f.key, ".")
		switch shapeOf(f.typ) {
		case named:
			sub, path = f.typ.Elem(), path+".NAME"
		case items:
			sub = f.typ.Elem()
		case group, source:
		default:
			continue
		}
		title := "`" + path + "`"
		if sub == reflect.TypeFor[Pool]() {
			title = "A pool: `brokers`, `controllers`, `workers` of a rig"
			path = strings.TrimPrefix(at+".POOL", ".")
		}
		if !done[sub] {
			done[sub] = true
			section(b, title, sub, path, costOf(f, cost))
		}
	}
}

// brief is the form of a value; what has a table of its own only points to it.
func brief(f field) string {
	switch shapeOf(f.typ) {
	case group:
		return "a map, see below"
	case named:
		return "a map from names to maps, see below"
	case items:
		return "a map or a list of maps, see below"
	}
	return form(f)
}

func mark(f field) string {
	if f.required {
		return " (required)"
	}
	return ""
}

func defaultText(f field) string {
	out := code(f.def)
	for _, d := range f.defs {
		out = strings.TrimPrefix(out+", "+d.provider+": "+code(d.value), ", ")
	}
	return out
}

func costOf(f field, inherited string) string {
	if f.cost != "" {
		return f.cost
	}
	return inherited
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func cellText(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
