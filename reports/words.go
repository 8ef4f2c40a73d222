package reports

import (
	"fmt"
	"strings"
)

// and joins as people do: "a, b and c".
func and(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sentence gives a clause its capital letter and full stop. Names of things
// that begin it keep their spelling.
func sentence(text string) string {
	for _, word := range []string{"with ", "on ", "throughput ", "over ", "the ", "at ", "at its", "what ", "not ", "no ", "rate ", "consume ", "p99 "} {
		if strings.HasPrefix(text, word) {
			text = strings.ToUpper(text[:1]) + text[1:]
		}
	}
	return text + "."
}
