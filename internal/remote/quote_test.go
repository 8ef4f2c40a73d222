package remote

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

func TestQuote(t *testing.T) {
	for _, tc := range []struct {
		words []string
		want  string
	}{
		{nil, ""},
		{[]string{"ls", "-l", "/a/b.c"}, "ls -l /a/b.c"},
		{[]string{""}, "''"},
		{[]string{"a b", "c'd", "$x", "FOO=bar", "~", "a\nb"}, `'a b' 'c'\''d' '$x' 'FOO=bar' '~' 'a` + "\n" + `b'`},
		{[]string{"ü"}, "'ü'"},
	} {
		if got := Quote(tc.words...); got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.words, got, tc.want)
		}
	}
}

// FuzzQuote has a real shell split what was quoted.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"", "'", `\`, "$(reboot)", "`id`", "a\nb", "-n", "*", "~root", "!x", "#", "a\x00b", "\xff", "%s", "&&", "'\\''"} {
		f.Add(s, "b")
		f.Add("x y", s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) {
			if err := (Cmd{Argv: []string{"x", a, b}}).check(); err == nil {
				t.Error("a NUL byte was not refused")
			}
			return
		}
		line := `printf '%s\0' ` + Quote(a, b, "end")
		out, err := exec.CommandContext(context.Background(), "sh", "-c", line).Output()
		if want := a + "\x00" + b + "\x00end\x00"; err != nil || string(out) != want {
			t.Errorf("%q became %q, %v", want, out, err)
		}
	})
}
