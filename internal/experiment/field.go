package experiment

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// A field is one key of the file as the struct tags describe it.
type field struct {
	name     string // of the Go field
	key      string
	doc      string
	cost     string // "" means: as what holds it
	def      string // "" means none
	defs     []providerDefault
	only     []string // providers that have it; empty means all
	enum     []string
	per      []string
	min      *int64
	required bool
	single   bool // a list of one may be written without the list
	index    int
	typ      reflect.Type
}

// fields lists the keys of a struct type in the order of declaration.
func fields(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		sf := t.Field(i)
		key := sf.Tag.Get("yaml")
		if key == "" {
			continue
		}
		f := field{name: sf.Name, key: key, doc: sf.Tag.Get("doc"), cost: sf.Tag.Get("cost"), def: sf.Tag.Get("default"), defs: providerDefaults(sf.Tag.Get("defaults")), only: list(sf.Tag.Get("only")),
			enum: list(sf.Tag.Get("enum")), per: list(sf.Tag.Get("per")), required: sf.Tag.Get("required") == "true",
			single: sf.Tag.Get("single") == "true", index: i, typ: sf.Type}
		if n, err := strconv.ParseInt(sf.Tag.Get("min"), 10, 64); err == nil {
			f.min = &n
		}
		out = append(out, f)
	}
	return out
}

// A providerDefault is what holds for rigs of one provider.
type providerDefault struct{ provider, value string }

func providerDefaults(tag string) []providerDefault {
	var out []providerDefault
	for _, one := range list(tag) {
		provider, value, _ := strings.Cut(one, "=")
		out = append(out, providerDefault{provider, value})
	}
	return out
}

// usualProvider is whose defaults are taken where the provider cannot be told.
const usualProvider = "lab"

// defaultFor is the default on a rig of the provider; "" for none.
func (f field) defaultFor(provider string) string {
	for _, d := range f.defs {
		if d.provider == provider {
			return d.value
		}
	}
	return f.def
}

func list(tag string) []string {
	if tag == "" {
		return nil
	}
	return strings.Split(tag, ",")
}

// least is the smallest value allowed: the min tag, or what the type has without one.
func (f field) least(otherwise int64) int64 {
	if f.min != nil {
		return *f.min
	}
	return otherwise
}

func keys(fs []field) []string {
	out := make([]string, len(fs))
	for i, f := range fs {
		out[i] = f.key
	}
	return out
}

func fieldNamed(fs []field, key string) (field, bool) {
	i := slices.IndexFunc(fs, func(f field) bool { return f.key == key })
	if i < 0 {
		return field{}, false
	}
	return fs[i], true
}

// A scalar reads itself from the text of the file.
type scalar interface {
	read(s string, f field) *refusal
}

// shape sorts the types of the file by how they are written.
type shape int

const (
	group   shape = iota // a struct: keys of ours
	named                // a map: names of the user's over groups
	foreign              // a map: Kafka's names over text
	free                 // a map: names of the user's over values of any form
	items                // a list of groups
	axes                 // the matrix
	words                // a list of text
	source               // a word or a group
	value                // a scalar
)

func shapeOf(t reflect.Type) shape {
	switch {
	case t == reflect.TypeFor[Source]():
		return source
	case t == reflect.TypeFor[[]Block]():
		return axes
	case t == reflect.TypeFor[Values]():
		return free
	case reflect.PointerTo(t).Implements(reflect.TypeFor[scalar]()):
		return value
	case t.Kind() == reflect.Struct:
		return group
	case t.Kind() == reflect.Map && t.Elem().Kind() == reflect.String:
		return foreign
	case t.Kind() == reflect.Map:
		return named
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return items
	case t.Kind() == reflect.Slice:
		return words
	}
	return value
}

// form says what a value of the field looks like.
func form(f field) string {
	switch len(f.enum) {
	case 0:
	case 1:
		return f.enum[0]
	default:
		return "one of " + strings.Join(f.enum, ", ")
	}
	switch shapeOf(f.typ) {
	case group:
		return "a map with the keys " + strings.Join(keys(fields(f.typ)), ", ")
	case named:
		return "a map from names to maps with the keys " + strings.Join(keys(fields(f.typ.Elem())), ", ")
	case foreign:
		return "a map from Kafka's names to values"
	case free:
		return freeForm
	case items:
		return "a map with the keys " + strings.Join(keys(fields(f.typ.Elem())), ", ") + ", or a list of such maps"
	case axes:
		return "a map from dotted paths to lists of values, or a list of such maps"
	case words:
		return "a list of text"
	case source:
		return "maven, or a map with archive and sha512, or with directory"
	}
	return valueForm(f)
}

func valueForm(f field) string {
	switch f.typ {
	case reflect.TypeFor[Bytes]():
		return bytesForm
	case reflect.TypeFor[Rate]():
		return rateForm
	case reflect.TypeFor[BitRate]():
		return bitRateForm
	case reflect.TypeFor[Duration]():
		return durationForm
	case reflect.TypeFor[Count]():
		return countForm(f)
	case reflect.TypeFor[SendRate]():
		return sendRateForm
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number above 0, such as 2 or 0.5"
	case reflect.String:
		return "text"
	}
	return wholeForm
}
