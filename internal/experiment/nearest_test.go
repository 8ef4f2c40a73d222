package experiment

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"num.io.threads", "num.network.threads", "log.retention.ms"}
	for word, want := range map[string]string{
		"num.io.thread": "num.io.threads", "retention.ms": "log.retention.ms", "num.newtork.threads": "num.network.threads",
		"Num.IO.Threads": "num.io.threads", "compression.type": "", "": "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := Nearest("word", nil); got != "" {
		t.Errorf("of nothing %q is the nearest", got)
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("abc", "acb")
	f.Fuzz(func(t *testing.T, a, b string) {
		if max(len(a), len(b)) > longestWord {
			t.Skip()
		}
		if d := distance(a, b); d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Errorf("distance(%q, %q) = %d", a, b, d)
		}
	})
}
