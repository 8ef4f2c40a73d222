package experiment_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"krig/internal/experiment"
)

func TestLoadChecksCells(t *testing.T) {
	const bench = "bench:\n  duration: 10s\n"
	tests := []struct {
		name, old, new string
		want           []string
	}{
		{"no workers", "    workers: {count: 2}\n", "", []string{"exp.yaml:5:5: rigs.lab.workers: is missing; expected a pool of hosts, such as workers: {count: 1}"}},
		{"pool without hosts", "workers: {count: 2}", "workers: {memory: 1GiB}", []string{
			"exp.yaml:7:14: rigs.lab.workers: has no hosts; expected count, or on: with the pool whose hosts it shares"}},
		{"circle", "{count: 3}\n    workers: {count: 2}", "{on: workers}\n    workers: {on: brokers}", []string{
			"exp.yaml:6:19: rigs.lab.brokers.on: goes in a circle; expected a pool with hosts of its own",
			"exp.yaml:7:19: rigs.lab.workers.on: goes in a circle; expected a pool with hosts of its own"}},
		{"on itself", "workers: {count: 2}", "workers: {on: workers}", []string{
			"exp.yaml:7:19: rigs.lab.workers.on: goes in a circle; expected a pool with hosts of its own"}},
		{"on a pool that is not there", "workers: {count: 2}", "workers: {on: controllers}", []string{
			"exp.yaml:7:19: rigs.lab.workers.on: there are no controllers in rig lab; expected a pool that the rig has"}},
		{"more than the pool shared", "workers: {count: 2}", "workers: {on: brokers, count: 4}", []string{
			"exp.yaml:7:35: rigs.lab.workers.count: 4 is more than the 3 hosts of brokers; expected at most 3"}},
		{"a disk of shared hosts", "workers: {count: 2}", "workers: {on: brokers, disk: {}, cpus: 2}", []string{
			"exp.yaml:7:34: rigs.lab.workers.disk: the hosts are those of brokers, which say what they have; expected brokers.disk",
			"exp.yaml:7:44: rigs.lab.workers.cpus: the hosts are those of brokers, which say what they have; expected brokers.cpus"}},
		{"profile and figures", "{count: 3}", "{count: 3, disk: {profile: ssd, write: 5MB/s}}", []string{
			"exp.yaml:6:41: rigs.lab.brokers.disk.profile: stands beside write, read or iops; expected a profile, or figures of its own"}},
		{"replicas above brokers", bench, bench + "  replication_factor: 4\n", []string{
			"exp.yaml:10:23: bench.replication_factor: 4 replicas need as many brokers; expected at most 3, the number of brokers"}},
		{"too old", bench, "kafka: {version: 2.7.1}\n" + bench, []string{"exp.yaml:8:18: kafka.version: 2.7.1 is too old; expected 2.8.0 or later"}},
		{"preview", bench, "kafka: {version: 3.2.3}\n" + bench, []string{
			"exp.yaml:8:18: kafka.version: KRaft was a preview in Kafka 3.2.3, and mode zookeeper is not built yet; expected 3.3.0 or later"}},
		{"as written", bench, "kafka: {version: 3.10}\n" + bench, []string{
			`exp.yaml:8:18: kafka.version: "3.10" is not a version of Kafka; expected three numbers, such as 4.4.0`}},
		{"combined", bench, "kafka: {mode: combined}\n" + bench, nil},
		{"archive without sum", bench, "kafka: {source: {archive: http://h/k.tgz}}\n" + bench, []string{
			"exp.yaml:8:17: kafka.source: has an archive without its sha512; expected sha512, as published beside the archive"}},
		{"archive not there", bench, "kafka: {source: {archive: k.tgz, sha512: abc}}\n" + bench, []string{
			"exp.yaml:8:27: kafka.source.archive: there is no file k.tgz; expected a .tgz of Kafka",
			`exp.yaml:8:42: kafka.source.sha512: "abc" is not a SHA-512; expected 128 hexadecimal digits`}},
		{"archive and directory", bench, "kafka: {source: {archive: k.tgz, directory: k}}\n" + bench, []string{
			"exp.yaml:8:17: kafka.source: has a directory and an archive; expected one of the two"}},
		{"heap above memory", bench, "kafka: {jvm: {heap: 2GiB}}\n" + bench, []string{
			"exp.yaml:8:21: kafka.jvm.heap: 2GiB and a controller's 256MiB of heap take all of the host's 2GiB; expected less, or more brokers.memory"}},
		{"memory below the heap", "{count: 3}", "{count: 3, memory: 1GiB}", []string{
			"exp.yaml:6:33: rigs.lab.brokers.memory: 1GiB leaves nothing beside a broker's heap of 1GiB and a controller's 256MiB; expected more than 1280MiB, or a smaller kafka.jvm.heap"}},
		{"hosts too small to be made", "workers: {count: 2}", "workers: {count: 2, memory: 1MiB, cpus: 0.001, disk: {size: 1MiB}}", []string{
			"exp.yaml:7:33: rigs.lab.workers.memory: 1MiB is too little for a host; expected 64MiB or more",
			"exp.yaml:7:45: rigs.lab.workers.cpus: 0.001 is less than the kernel can give; expected 0.01 or more",
			"exp.yaml:7:65: rigs.lab.workers.disk.size: 1MiB is too small for a file system; expected 300MiB or more"}},
		{"no sample inside the load", bench, bench + "collect: {interval: 1m}\n", []string{
			"exp.yaml:10:21: collect.interval: 1m is longer than the load of 10s, which no sample would see; expected less than bench.duration"}},
		{"nothing to read", bench, bench + "  producers: 0\n  consumers: 1\n", []string{
			"exp.yaml:11:14: bench.consumers: there are no records to read without producers; expected bench.producers above 0"}},
		{"no load", bench, bench + "  producers: 0\n", []string{
			"exp.yaml:10:14: bench.producers: without producers and consumers there is no load; expected 1 or more, such as 1 per worker"}},
		{"two ends", bench, bench + "  records: 5\n", []string{
			"exp.yaml:9:13: bench.duration: stands beside records, and each would end the load; expected one of the two"}},
		{"too short", bench, "bench:\n  duration: 500ms\n", []string{
			"exp.yaml:9:13: bench.duration: 500ms is too short to see anything; expected 1s or more"}},
		{"limit inside the load", bench, bench + "  limit: 12s\n", []string{
			"exp.yaml:10:10: bench.limit: 12s would end the repeat inside its 15s of load; expected more than warmup and duration together"}},
		{"interval", bench, bench + "collect: {interval: 1500ms}\n", []string{
			"exp.yaml:10:21: collect.interval: 1.5s is not possible; expected whole seconds, 1s or more"}},
		{"beyond the disks", bench, "bench:\n  records: 30_000_000\n  replication_factor: 2\n  partitions: 3\n", []string{
			"exp.yaml:9:12: bench.records: 30000000 records of 1KiB in 2 replicas take up to 19.4GiB on one broker, whose disk has 8GiB; expected at most 90 % of the disk: fewer records, a larger disk or more partitions and brokers"}},
		{"one partition on one of three disks", bench, "bench:\n  records: 8_000_000\n", []string{
			"exp.yaml:9:12: bench.records: 8000000 records of 1KiB in 1 replicas take up to 7.7GiB on one broker, whose disk has 8GiB; expected at most 90 % of the disk: fewer records, a larger disk or more partitions and brokers"}},
		{"the same over three disks", bench, "bench:\n  records: 8_000_000\n  partitions: 1 per broker\n", nil},
		{"a fault hides only what follows from it", bench, "kafka: {version: 1}\n" + bench + "  replication_factor: 9\n  topics: x\n", []string{
			`exp.yaml:8:18: kafka.version: "1" is not a version of Kafka; expected three numbers, such as 4.4.0`,
			"exp.yaml:11:23: bench.replication_factor: 9 replicas need as many brokers; expected at most 3, the number of brokers",
			`exp.yaml:12:11: bench.topics: "x" is not a whole number; expected a whole number, such as 3 or 2_000_000, or one per broker, worker, such as 4 per broker`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, got := load(t, edit(t, minimal, tt.old, tt.new))
			for i := range got { // paths in reasons are absolute
				got[i] = strings.ReplaceAll(got[i], os.TempDir(), "")
			}
			compare(t, got, tt.want)
		})
	}
	t.Run("mode combined and controllers", func(t *testing.T) {
		text := edit(t, minimal, "    workers", "    controllers: {count: 1}\n    workers") + "kafka: {mode: combined}\n"
		_, got := load(t, text)
		compare(t, got, []string{"exp.yaml:7:18: rigs.lab.controllers: with mode combined the brokers are the controllers; expected no controllers, or kafka.mode: kraft"})
	})
}

// A stage's check is asked of every cell, also beside errors of the file, and
// answers once for each place.
func TestCheckAsksStages(t *testing.T) {
	text := minimal + "  producer: {acks: all}\nmatrix:\n  bench.producer.linger.ms: [5, bad]\n  brokers.count: [1, 2]\n"
	f, errs := load(t, text)
	if errs != nil {
		t.Fatal(errs)
	}
	stage := func(c *experiment.Cell) []experiment.Problem {
		out := []experiment.Problem{{Path: "bench.producer.acks", Reason: "never"}}
		if c.Bench.Producer["linger.ms"] == "bad" {
			out = append(out, experiment.Problem{Path: "bench.producer.linger.ms", Reason: "is no number", Expected: "one"})
		}
		return out
	}
	compare(t, lines(f.Check(stage), filepath.Dir(f.Path)+"/"), []string{
		"exp.yaml:10:20: bench.producer.acks: never (in cell linger.ms=5,brokers=1)",
		"exp.yaml:12:33: bench.producer.linger.ms: is no number (in cell linger.ms=bad,brokers=1); expected one"})

	f, errs = load(t, text+"repeat: 0\n")
	got := lines(f.Check(stage), filepath.Dir(f.Path)+"/")
	if len(errs) != 1 || len(got) != 3 {
		t.Errorf("beside an error of the file: got %q and %q", errs, got)
	}
}

func TestLocate(t *testing.T) {
	f, plan := good(t, minimal+"matrix:\n  brokers.count: [1, 2]\n")
	tests := []struct {
		name string
		p    experiment.Problem
		line int
		key  string
	}{
		{"a key", experiment.Problem{Path: "bench.duration"}, 9, "bench.duration"},
		{"without the rig", experiment.Problem{Path: "workers.count"}, 7, "rigs.lab.workers.count"},
		{"with the rig", experiment.Problem{Path: "rigs.lab.workers.count"}, 7, "rigs.lab.workers.count"},
		{"a default", experiment.Problem{Path: "bench.producer.acks"}, 9, "bench.producer.acks"},
		{"nothing of it there", experiment.Problem{Path: "kafka.broker.num.io.threads"}, 1, "kafka.broker.num.io.threads"},
		{"an axis", experiment.Problem{Path: "brokers.count"}, 11, "rigs.lab.brokers.count"},
		{"a matrix value", experiment.Problem{Path: "brokers.count", Cell: plan.Cells[1].ID}, 11, "rigs.lab.brokers.count"},
		{"no key at all", experiment.Problem{Path: "nothing.such"}, 1, "nothing.such"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := f.Locate(tt.p)
			if e.Line != tt.line || e.Key != tt.key || e.File != f.Path {
				t.Errorf("got %s:%d %s, want line %d %s", e.File, e.Line, e.Key, tt.line, tt.key)
			}
		})
	}
}
