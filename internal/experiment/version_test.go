package experiment_test

import (
	"testing"

	"krig/internal/experiment"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]experiment.Version{"4.4.0": {4, 4, 0}, "2.8.2": {2, 8, 2}, "03.10.1": {3, 10, 1}} {
		if got, ok := experiment.ParseVersion(text); !ok || got != want {
			t.Errorf("ParseVersion(%q) = %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "4", "4.4", "4.4.0-rc1", "v4.4.0", "4.4.0.1", "4.4.x", " 4.4.0", "12345.0.0"} {
		if got, ok := experiment.ParseVersion(text); ok {
			t.Errorf("ParseVersion(%q) = %v", text, got)
		}
	}
	v := experiment.Version{Major: 3, Minor: 5}
	if !v.AtLeast(3, 5) || !v.AtLeast(2, 9) || v.AtLeast(3, 6) || v.AtLeast(4, 0) {
		t.Errorf("%v is misjudged", v)
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("4.4.0")
	f.Fuzz(func(t *testing.T, s string) {
		if v, ok := experiment.ParseVersion(s); ok && (len(s) < 5 || v.Major < 0 || v.Major > 9999) {
			t.Errorf("ParseVersion(%q) = %v", s, v)
		}
	})
}
