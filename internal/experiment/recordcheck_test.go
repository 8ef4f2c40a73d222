package experiment_test

import "testing"

func TestRecordsThatBrokersRefuse(t *testing.T) {
	const refused = "exp.yaml:10:16: bench.record_size: 10MiB does not fit a broker's message.max.bytes of "
	const remedy = "; expected a smaller record, or a larger kafka.broker.message.max.bytes"
	text := minimal + "  record_size: 10MiB\n"
	for more, want := range map[string][]string{
		"": {refused + "1048588" + remedy},
		"kafka: {broker: {message.max.bytes: 10485760}}\n":   {refused + "10485760" + remedy},
		"kafka: {broker: {message.max.bytes: 11_000_000}}\n": nil, // Kafka's to judge
		"kafka: {broker: {message.max.bytes: 11000000}}\n":   nil,
		"  producer: {compression.type: zstd}\n":             nil,
		"  producer: {compression.type: none}\n":             {refused + "1048588" + remedy},
	} {
		t.Run(more, func(t *testing.T) {
			_, got := load(t, text+more)
			compare(t, got, want)
		})
	}
}
