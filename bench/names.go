package bench

import (
	"fmt"
	"slices"
	"strings"

	"krig/internal/experiment"
)

// clientNames are settings that Kafka's producers and consumers share, as version 4.4 knows them.
const clientNames = `
bootstrap.resolve.timeout.ms bootstrap.servers client.dns.lookup client.id client.rack
config.providers connections.max.idle.ms enable.metrics.push interceptor.classes
metadata.cluster.check.enable metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level
metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
request.timeout.ms retry.backoff.max.ms retry.backoff.ms send.buffer.bytes
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
`

// producerNames are a producer's own.
const producerNames = `
acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type
compression.zstd.level delivery.timeout.ms enable.idempotence key.serializer linger.ms max.block.ms
max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
partitioner.ignore.keys partitioner.rack.aware retries transaction.timeout.ms
transaction.two.phase.commit.enable transactional.id value.serializer
`

// consumerNames are a consumer's own.
const consumerNames = `
allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs default.api.timeout.ms
enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
isolation.level key.deserializer max.partition.fetch.bytes max.poll.interval.ms max.poll.records
partition.assignment.strategy session.timeout.ms share.acknowledgement.mode share.acquire.mode
value.deserializer
`

// checkNames refuses settings that Kafka's clients do not know, whichever driver runs:
// both clients would let them pass without effect.
func checkNames(c *experiment.Cell) []experiment.Problem {
	var out []experiment.Problem
	for _, kind := range []struct {
		name, own string
		asked     map[string]string
	}{{"producer", producerNames, c.Bench.Producer}, {"consumer", consumerNames, c.Bench.Consumer}} {
		known := append(strings.Fields(clientNames), strings.Fields(kind.own)...)
		for key := range kind.asked {
			p := experiment.Problem{Path: "bench." + kind.name + "." + key}
			switch {
			case slices.Contains(known, key):
				continue
			case strings.HasPrefix(key, "ssl.") || strings.HasPrefix(key, "sasl.") || strings.HasPrefix(key, "security."):
				p.Reason = "encryption and authentication are not built yet"
			default:
				p.Reason = fmt.Sprintf("Kafka's %s has no setting %s", kind.name, key)
				p.Expected = "a name of Kafka's own"
			}
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b experiment.Problem) int { return strings.Compare(a.Path, b.Path) })
	return out
}
