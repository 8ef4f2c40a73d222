package remote

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestMarkWriter(t *testing.T) {
	const mark = "krig-MARK"
	for _, tc := range []struct {
		name   string
		writes []string
		want   string
		begun  bool
		group  int
	}{
		{"at once", []string{mark + " 42\nout"}, "out", true, 42},
		{"noise before it", []string{"Welcome!\nno newline", mark + " 42\n", "out", "put"}, "output", true, 42},
		{"in pieces", strings.Split("noise"+mark+" 42\nout", ""), "out", true, 42},
		{"much noise", []string{strings.Repeat("krig-MAR", 1<<16), mark + " 42\nx"}, "x", true, 42},
		{"no group known", []string{mark + " \nout"}, "out", true, 0},
		{"never", []string{"sudo: no\n"}, "", false, 0},
		{"only once", []string{mark + " 42\n" + mark + " 43\n"}, mark + " 43\n", true, 42},
	} {
		var out bytes.Buffer
		w := newMarkWriter(mark, &out)
		for _, s := range tc.writes {
			if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("%s: wrote %d of %d, %v", tc.name, n, len(s), err)
			}
		}
		if begun, group := w.found(); begun != tc.begun || group != tc.group || out.String() != tc.want {
			t.Errorf("%s: %t, %d, %q", tc.name, begun, group, out.String())
		}
		if len(w.held) > 1<<10 {
			t.Errorf("%s: %d bytes are held", tc.name, len(w.held))
		}
	}
}

func TestClip(t *testing.T) {
	for _, size := range []int{0, 1, clipHalf, 2 * clipHalf, 2*clipHalf + 1, 10 * clipHalf} {
		for _, step := range []int{1, 1000, 3*clipHalf + 1} {
			text := strings.Repeat("0123456789", size/10+1)[:size]
			var c clip
			for rest := text; rest != ""; {
				n := min(step, len(rest))
				c.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			want := text
			if over := size - 2*clipHalf; over > 0 {
				want = fmt.Sprintf("%s\n[%d bytes left out]\n%s", text[:clipHalf], over, text[size-clipHalf:])
			}
			if got := c.String(); got != want {
				t.Errorf("%d bytes by %d: got %d, want %d", size, step, len(got), len(want))
			}
		}
	}
}

func TestHeadline(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"\n one \n\ntwo\n":                "one; two",
		"1\n2\n3\n4\n5\n6\n":              "1; 2; 3; 4; 5",
		strings.Repeat("x", 600):          strings.Repeat("x", 500) + "…",
		strings.Repeat("x", 499) + "üüüü": strings.Repeat("x", 499) + "…",
	} {
		if got := headline(text); got != want {
			t.Errorf("%.20q: got %q", text, got)
		}
	}
}

func TestHostsError(t *testing.T) {
	var none *HostsError
	if err := none.orNil(); err != nil {
		t.Errorf("nobody failed: %v", err)
	}
	cause := errors.New("no space")
	exit := &ExitError{Host: "b1", Argv: []string{"apt-get", "install", "x y"}, Code: 100, Stderr: "E: Unable to locate package x\n"}
	err := (&HostsError{Total: 7, Failed: []HostError{
		{"b2", fmt.Errorf("making the disk: %w", cause)},
		{"b1", fmt.Errorf("installing java: %w", exit)},
	}}).orNil()
	want := `2 of 7 hosts failed:
  installing java: b1: apt-get install 'x y': exit 100: E: Unable to locate package x
  b2: making the disk: no space`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	var found *ExitError
	if !errors.Is(err, cause) || !errors.As(err, &found) || found != exit {
		t.Error("causes are not found")
	}
	one := (&HostsError{Total: 7, Failed: []HostError{{"b2", cause}}}).orNil()
	if one.Error() != "b2: no space" {
		t.Errorf("got %s", one)
	}
}
