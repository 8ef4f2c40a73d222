package remote

import "strings"

// Quote is a command line that a POSIX shell splits into exactly these words.
// A NUL byte, which no command line can carry, is the caller's to refuse.
func Quote(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quoteWord(w)
	}
	return strings.Join(quoted, " ")
}

func quoteWord(w string) string {
	if w != "" && strings.IndexFunc(w, special) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// special tells whether a character may mean something to a shell. "=" does: a
// first word with it is an assignment.
func special(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("_@%+:,./-", r)
}
