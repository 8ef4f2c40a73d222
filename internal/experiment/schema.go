package experiment

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// object is one JSON object of the schema.
type object map[string]any

// What a scalar looks like, as regular expressions of JSON Schema.
const (
	namePattern   = `^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`
	numberPattern = `[0-9]+(_[0-9]+)*(\.[0-9]+)?`
	digitsPattern = `[1-9][0-9]*(_[0-9]+)*`
)

// Schema is the JSON Schema (draft 2020-12) of the file, made from the Go
// types: what an editor completes and checks from. It sees keys, forms and
// units, not what one key means for another.
func Schema() ([]byte, error) {
	root := schemaOf(field{typ: reflect.TypeFor[Experiment]()})
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "krig experiment"
	root["$defs"] = object{
		"pool": groupSchema(reflect.TypeFor[Pool]()),
		"axes": blockSchema(),
	}
	out, err := json.MarshalIndent(root, "", "  ")
	return append(out, '\n'), err
}

// schemaOf describes the values of a field.
func schemaOf(f field) object {
	var s object
	switch shapeOf(f.typ) {
	case group:
		s = groupSchema(f.typ)
		if f.typ == reflect.TypeFor[Pool]() {
			s = object{"$ref": "#/$defs/pool"}
		}
	case named:
		s = object{"type": "object", "minProperties": 1, "propertyNames": object{"pattern": namePattern},
			"additionalProperties": schemaOf(field{typ: f.typ.Elem()})}
	case foreign:
		s = object{"type": "object", "additionalProperties": object{"type": []string{"string", "number", "boolean"}}}
	case free:
		s = object{"type": "object", "propertyNames": object{"pattern": variableName.String()}, "additionalProperties": object{"not": object{"type": "null"}}}
	case items:
		one := groupSchema(f.typ.Elem())
		several := groupSchema(f.typ.Elem())
		several["required"] = []string{"name"}
		s = object{"oneOf": []object{one, {"type": "array", "minItems": 1, "items": one, "maxItems": 1}, {"type": "array", "minItems": 2, "items": several}}}
	case axes:
		s = object{"oneOf": []object{{"$ref": "#/$defs/axes"}, {"type": "array", "minItems": 1, "items": object{"$ref": "#/$defs/axes"}}}}
	case words:
		s = object{"type": "array", "items": object{"type": "string"}}
	case source:
		s = object{"oneOf": []object{{"const": "maven"}, sourceSchema("archive", "sha512"), sourceSchema("directory")}}
	default:
		s = valueSchema(f)
	}
	return described(s, f)
}

// described adds what the tags say.
func described(s object, f field) object {
	if f.doc != "" {
		s["description"] = f.doc
	}
	if f.def != "" {
		s["default"] = defaultValue(f)
	}
	return s
}

// defaultValue is a default as JSON has it: a number where the file has one.
func defaultValue(f field) any {
	var v any
	if f.typ.Kind() != reflect.String && json.Unmarshal([]byte(f.def), &v) == nil {
		return v
	}
	return f.def
}

func groupSchema(t reflect.Type) object {
	properties := object{}
	required := []string{}
	for _, f := range fields(t) {
		properties[f.key] = schemaOf(f)
		if f.required {
			required = append(required, f.key)
		}
	}
	s := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// sourceSchema is a source of Kafka with exactly these keys.
func sourceSchema(names ...string) object {
	s := groupSchema(reflect.TypeFor[Source]())
	all := s["properties"].(object)
	for key := range all {
		if !slices.Contains(names, key) {
			delete(all, key)
		}
	}
	s["required"] = names
	return s
}

func blockSchema() object {
	one := object{"type": []string{"string", "number", "boolean", "null"}}
	return object{"type": "object", "minProperties": 1, "additionalProperties": object{
		"type": "array", "minItems": 1,
		"items":       object{"oneOf": []object{one, {"type": "array", "minItems": 2, "items": one}}},
		"description": "values of one dotted path, or rows for several joined by commas; null is the default"}}
}

// valueSchema describes a scalar. Numbers with underscores are text to most
// readers of YAML, so both forms are allowed.
func valueSchema(f field) object {
	text := func(pattern string) object { return object{"type": "string", "pattern": pattern} }
	switch f.typ {
	case reflect.TypeFor[Bytes]():
		return text("^" + numberPattern + " ?(" + unitPattern(byteUnits(), "") + ")$")
	case reflect.TypeFor[Rate]():
		return text("^" + numberPattern + " ?(" + unitPattern(byteUnits(), "/s") + ")$")
	case reflect.TypeFor[BitRate]():
		return text("^" + numberPattern + " ?(" + unitPattern(bitUnits(), "") + ")$")
	case reflect.TypeFor[Duration]():
		return text(durationPattern.String())
	case reflect.TypeFor[Count]():
		return object{"oneOf": []object{{"type": "integer", "minimum": f.least(1)}, text("^(" + leastDigits(f) + ")( per (" + strings.Join(f.per, "|") + "))?$")}}
	case reflect.TypeFor[SendRate]():
		return object{"oneOf": []object{{"type": "number", "exclusiveMinimum": 0}, {"const": "max"}, text("^" + numberPattern + "$")}}
	}
	switch f.typ.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number", "exclusiveMinimum": 0}
	case reflect.Int, reflect.Uint64:
		return wholeSchema(f)
	}
	switch {
	case len(f.enum) > 0:
		return object{"enum": f.enum}
	case f.key == "name":
		return text(namePattern)
	}
	return object{"type": "string", "minLength": 1}
}

func wholeSchema(f field) object {
	if len(f.enum) == 1 {
		return object{"const": defaultValue(field{typ: f.typ, def: f.enum[0]})}
	}
	least := f.least(1)
	if f.typ.Kind() == reflect.Uint64 {
		least = 0
		f.min = &least
	}
	return object{"oneOf": []object{{"type": "integer", "minimum": least}, {"type": "string", "pattern": "^(" + leastDigits(f) + ")$"}}}
}

// leastDigits is a whole number in text, at least the field's least of 0 or 1.
func leastDigits(f field) string {
	if f.least(1) > 0 {
		return digitsPattern
	}
	return "0|" + digitsPattern
}

func unitPattern(units []unit, suffix string) string {
	names := make([]string, len(units))
	for i, u := range units {
		names[i] = u.name + suffix
	}
	return strings.Join(names, "|")
}
