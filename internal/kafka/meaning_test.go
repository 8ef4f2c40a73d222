package kafka_test

import (
	"testing"

	"krig/internal/kafka"
)

func TestSameMeaning(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"8", "8", true}, {"8", "08", true}, {"8", "8.0", true}, {"0.5", ".5", true}, {"-1", "-1", true}, {"8", "9", false}, {"", "8", false},
		{"1073741824", "1073741824", true}, {"9223372036854775807", "9223372036854775806", false}, {"9007199254740993", "9007199254740992", false},
		{"0.0005", "5.0E-4", true}, {"1e3", "1000", true}, {"1e3", "1001", false}, {"1e", "1", false},
		{"true", "TRUE", true}, {"true", "false", false}, {"true", "1", false},
		{"delete, compact", "delete,compact", true}, {"delete,compact", "compact,delete", false}, {"a", "a,b", false},
		{" lz4 ", "lz4", true}, {"lz4", "gzip", false}, {"", "", true}, {"", "0", false},
		{"1e999999999", "1e999999999", true}, {"1e999999999", "2", false}, {"0x10", "16", false}, {"1/2", "0.5", false},
	} {
		if got := kafka.SameMeaning(tt.a, tt.b); got != tt.want {
			t.Errorf("SameMeaning(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
		if got := kafka.SameMeaning(tt.b, tt.a); got != tt.want {
			t.Errorf("SameMeaning(%q, %q) = %v, want %v", tt.b, tt.a, got, tt.want)
		}
	}
}

func FuzzSameMeaning(f *testing.F) {
	f.Add("1e9", "1000000000")
	f.Add("a,b", "a, b")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !kafka.SameMeaning(a, a) {
			t.Errorf("%q does not mean what it means", a)
		}
		if kafka.SameMeaning(a, b) != kafka.SameMeaning(b, a) {
			t.Errorf("%q and %q: not the same in both directions", a, b)
		}
	})
}
