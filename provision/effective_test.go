package provision

import (
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

func TestSameMeaning(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"8", "8", true}, {"8", "08", true}, {"8", "8.0", true}, {"0.5", ".5", true}, {"-1", "-1", true}, {"8", "9", false},
		{"1073741824", "1073741824", true}, {"9223372036854775807", "9223372036854775806", false},
		{"true", "TRUE", true}, {"true", "false", false}, {"true", "1", false},
		{"delete, compact", "delete,compact", true}, {"delete,compact", "compact,delete", false}, {"a", "a,b", false},
		{" lz4 ", "lz4", true}, {"lz4", "gzip", false}, {"", "", true}, {"", "0", false},
		{"1e999999999", "1e999999999", true}, {"1e999999999", "2", false}, {"0x10", "16", false}, {"1/2", "0.5", false},
	} {
		if got := sameMeaning(tt.a, tt.b); got != tt.want {
			t.Errorf("sameMeaning(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
		if got := sameMeaning(tt.b, tt.a); got != tt.want {
			t.Errorf("sameMeaning(%q, %q) = %v, want %v", tt.b, tt.a, got, tt.want)
		}
	}
}

func FuzzSameMeaning(f *testing.F) {
	f.Add("1e9", "1000000000")
	f.Add("a,b", "a, b")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !sameMeaning(a, a) {
			t.Errorf("%q does not mean what it means", a)
		}
		if sameMeaning(a, b) != sameMeaning(b, a) {
			t.Errorf("%q and %q: not the same in both directions", a, b)
		}
	})
}

func TestDifferences(t *testing.T) {
	asked := map[string]string{
		"num.io.threads": "8", "compression.type": "lz4", "process.roles": "broker", "auto.create.topics.enable": "False",
		"log.retention.hours": "2", "log.roll.hours": "24", "log.retention.minutes": "120",
	}
	effective := map[string]string{
		"num.io.threads": "8", "compression.type": "producer", "auto.create.topics.enable": "false",
		"log.retention.hours": "2", "log.retention.ms": "60000", "log.roll.hours": "24", "log.roll.ms": "86400000", "log.retention.minutes": "120",
	}
	want := []string{
		"compression.type was asked to be lz4 and is producer",
		"log.retention.hours=2 does not count: log.retention.ms=60000 outranks it",
		"log.retention.minutes=120 does not count: log.retention.ms=60000 outranks it",
	}
	if got := differences(asked, effective); !slices.Equal(got, want) {
		t.Errorf("differences = %q\nwant %q", got, want)
	}
}

// A value that the admin API gives as null is shown as such, with the reason.
func TestTold(t *testing.T) {
	eight := "8"
	got := told([]kadm.Config{{Key: "num.io.threads", Value: &eight}, {Key: "ssl.key.password", Sensitive: true}, {Key: "rack.id"}})
	want := map[string]string{
		"num.io.threads": "8", "ssl.key.password": "null (sensitive: Kafka does not tell it)", "rack.id": "null (no value is set)",
	}
	if !maps.Equal(got, want) {
		t.Errorf("told = %q, want %q", got, want)
	}
	asked := map[string]string{"num.io.threads": "8", "ssl.key.password": "secret", "rack.id": "r1"}
	warned := []string{
		"rack.id was asked to be r1 and is null (no value is set)",
		"ssl.key.password cannot be read back: it is sensitive, and Kafka does not tell it",
	}
	if got := differences(asked, want); !slices.Equal(got, warned) {
		t.Errorf("differences = %q, want %q", got, warned)
	}
}
