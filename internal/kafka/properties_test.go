package kafka_test

import (
	"maps"
	"strings"
	"testing"

	"krig/internal/kafka"
)

func TestWriteProperties(t *testing.T) {
	got := string(kafka.WriteProperties(map[string]string{"b": " two words #", "a=b:c d": `\x`, "c": "#1\n\té😀", "d": ""}))
	want := `a\=b\:c\ d=\\x` + "\n" + `b=\ two words #` + "\n" + `c=\#1\n\t\u00e9\ud83d\ude00` + "\n" + "d=\n"
	if got != want {
		t.Errorf("written as\n%s\nwant\n%s", got, want)
	}
}

func TestReadProperties(t *testing.T) {
	got := kafka.ReadProperties("#\n! c\n\n a = b=c \nno value\nk=\n")
	if want := map[string]string{"a": "b=c", "k": ""}; !maps.Equal(got, want) {
		t.Errorf("ReadProperties = %v, want %v", got, want)
	}
}

// What is written is one line of ASCII a key, whatever the experiment says, and
// Java reads it back.
func FuzzWriteProperties(f *testing.F) {
	f.Add("key", "value")
	f.Add(" a=b:c#", "#\\ \n\r\tü€😀")
	f.Fuzz(func(t *testing.T, k, v string) {
		text := string(kafka.WriteProperties(map[string]string{k: v}))
		if strings.Count(text, "\n") != 1 || strings.ContainsFunc(text[:len(text)-1], notASCII) {
			t.Fatalf("written as %q", text)
		}
		if i := strings.IndexByte(text, '='); i > 0 && !strings.ContainsAny(k+v, "\\=: #!\n\r\t") && !strings.ContainsFunc(k+v, notASCII) && text != k+"="+v+"\n" {
			t.Errorf("%q=%q written as %q", k, v, text)
		}
	})
}

func notASCII(r rune) bool { return r < 0x20 || r > 0x7e }

func FuzzReadProperties(f *testing.F) {
	f.Add("a=b\n#c\n")
	f.Fuzz(func(t *testing.T, s string) { kafka.ReadProperties(s) })
}
