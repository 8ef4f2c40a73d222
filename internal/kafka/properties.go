package kafka

import (
	"bufio"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
)

// WriteProperties writes a map as a Java properties file, sorted: one line of
// ASCII a key.
func WriteProperties(p map[string]string) []byte {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(p)) {
		fmt.Fprintf(&b, "%s=%s\n", escaped(k, true), escaped(p[k], false))
	}
	return []byte(b.String())
}

// escaped writes text so that Java's properties reader gives it back.
func escaped(s string, key bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\\', key && (r == '=' || r == ':'), (key || i == 0) && r == ' ', i == 0 && (r == '#' || r == '!'):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r > 0x7e:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ReadProperties reads the simple properties files that Kafka itself writes:
// one key=value a line, comments, no continued lines.
func ReadProperties(text string) map[string]string {
	out := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		if ok {
			out[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return out
}
