package provision

import (
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

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
