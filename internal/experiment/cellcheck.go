package experiment

import (
	"fmt"
	"net/url"
	"regexp"
	"time"
)

var sha512Pattern = regexp.MustCompile(`^[0-9a-fA-F]{128}$`)

// diskUse is the share of a disk that a load may fill: beyond it a run stops.
const diskUse = 0.9

func checkPlaced(pool string) func(*Cell) []Problem {
	return func(c *Cell) []Problem {
		p := c.Rig.pool(pool)
		switch {
		case p.exists() || pool == "controllers" && p == (Pool{}):
			return nil
		case p == (Pool{}):
			return []Problem{{Path: pool, Reason: "is missing", Expected: "a pool of hosts, such as " + pool + ": {count: 1}"}}
		}
		return []Problem{{Path: pool, Reason: "has no hosts", Expected: "count, or on: with the pool whose hosts it shares"}}
	}
}

// checkShared checks a pool that has its hosts from another.
func checkShared(pool string) func(*Cell) []Problem {
	return func(c *Cell) []Problem {
		p := c.Rig.pool(pool)
		if p.On == "" {
			return nil
		}
		own, n := c.Rig.owner(pool)
		on := c.Rig.pool(p.On)
		switch {
		case c.Rig.pool(own).On != "":
			return []Problem{{Path: pool + ".on", Reason: "goes in a circle", Expected: "a pool with hosts of its own"}}
		case !on.exists():
			return []Problem{{Path: pool + ".on", Reason: "there are no " + p.On + " in rig " + c.RigName, Expected: "a pool that the rig has"}}
		}
		var out []Problem
		if p.Count > n {
			out = append(out, Problem{Path: pool + ".count", Reason: fmt.Sprintf("%d is more than the %d hosts of %s", p.Count, n, p.On), Expected: fmt.Sprintf("at most %d", n)})
		}
		for _, has := range []struct {
			key string
			set bool
		}{{"disk", p.Disk != (Disk{})}, {"network", p.Network != (Network{})}, {"cpus", p.CPUs > 0}, {"memory", p.Memory > 0}} {
			if has.set {
				out = append(out, Problem{Path: pool + "." + has.key, Reason: "the hosts are those of " + own + ", which say what they have", Expected: own + "." + has.key})
			}
		}
		return out
	}
}

func checkCombined(c *Cell) []Problem {
	if c.Kafka.Mode != "combined" || !c.Rig.Controllers.exists() {
		return nil
	}
	return []Problem{{Path: "controllers", Reason: "with mode combined the brokers are the controllers", Expected: "no controllers, or kafka.mode: kraft"}}
}

func checkVersion(c *Cell) []Problem {
	text := c.Kafka.Version
	v, ok := ParseVersion(text)
	switch {
	case !ok:
		return []Problem{{Path: "kafka.version", Reason: quoted(text) + " is not a version of Kafka", Expected: "three numbers, such as 4.4.0"}}
	case !v.AtLeast(2, 8):
		return []Problem{{Path: "kafka.version", Reason: text + " is too old", Expected: "2.8.0 or later"}}
	case !v.AtLeast(3, 3):
		return []Problem{{Path: "kafka.version", Reason: "KRaft was a preview in Kafka " + text + ", and mode zookeeper is not built yet", Expected: "3.3.0 or later"}}
	}
	return nil
}

func checkSource(c *Cell) []Problem {
	const path = "kafka.source"
	s := c.Kafka.Source
	switch {
	case s == (Source{}):
		return nil
	case s.Directory != "" && (s.Archive != "" || s.SHA512 != ""):
		return []Problem{{Path: path, Reason: "has a directory and an archive", Expected: "one of the two"}}
	case s.Directory != "":
		if missing(s.Directory, true) {
			return []Problem{{Path: path + ".directory", Reason: "there is no directory " + s.Directory, Expected: "an unpacked distribution of Kafka"}}
		}
		return nil
	case s.Archive == "":
		return []Problem{{Path: path, Reason: "has a sha512 and no archive", Expected: "archive, a path or a URL"}}
	}
	var out []Problem
	if s.SHA512 == "" {
		out = append(out, Problem{Path: path, Reason: "has an archive without its sha512", Expected: "sha512, as published beside the archive"})
	} else if !sha512Pattern.MatchString(s.SHA512) {
		out = append(out, Problem{Path: path + ".sha512", Reason: quoted(s.SHA512) + " is not a SHA-512", Expected: "128 hexadecimal digits"})
	}
	if u, err := url.Parse(s.Archive); isURL(s.Archive) && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		out = append(out, Problem{Path: path + ".archive", Reason: quoted(s.Archive) + " is not a URL that krig can fetch", Expected: "https://HOST/PATH, or a path of this machine"})
	} else if !isURL(s.Archive) && missing(s.Archive, false) {
		out = append(out, Problem{Path: path + ".archive", Reason: "there is no file " + s.Archive, Expected: "a .tgz of Kafka"})
	}
	return out
}

// usualHeap is the heap of a file that names none.
const usualHeap Bytes = 1 << 30

func checkHeap(c *Cell) []Problem {
	pool, _ := c.Rig.owner("brokers")
	heap, memory := c.Kafka.JVM.Heap, c.Rig.pool(pool).Memory
	need, what := heap, heap.String()
	if q := c.Quorum(); q.Pool == pool && !q.Combined {
		need, what = need+controllerHeap, what+" and a controller's "+controllerHeap.String()
	}
	switch {
	case memory == 0 || need < memory:
		return nil
	case heap == usualHeap: // the memory is what was written
		return []Problem{{Path: pool + ".memory", Reason: fmt.Sprintf("%s leaves nothing beside a broker's heap of %s", memory, what), Expected: "more than " + need.String() + ", or a smaller kafka.jvm.heap"}}
	}
	return []Problem{{Path: "kafka.jvm.heap", Reason: what + " of heap take all of the host's " + memory.String(), Expected: "less, or more " + pool + ".memory"}}
}

// checkThrottle checks that a disk has its speed from one place.
func checkThrottle(pool string) func(*Cell) []Problem {
	return func(c *Cell) []Problem {
		d := c.Rig.pool(pool).Disk
		write, read := profileRates(d.Profile)
		if d.Profile == "custom" || d.Profile == "" || d.IOPS == 0 && d.Write == write && d.Read == read {
			return nil
		}
		return []Problem{{Path: pool + ".disk.profile", Reason: "stands beside write, read or iops", Expected: "a profile, or figures of its own"}}
	}
}

// The least that a lab host can be made with.
const (
	leastDisk   Bytes = 300 << 20 // mkfs.xfs refuses less
	leastMemory Bytes = 64 << 20  // sshd, krig-agent and sar
	leastCPUs         = 0.01      // the kernel's least quota, 1 ms of 100
)

// checkLeast refuses hosts that are too small to be made.
func checkLeast(pool string) func(*Cell) []Problem {
	return func(c *Cell) []Problem {
		var out []Problem
		p := c.Rig.pool(pool)
		if p.Disk.Size > 0 && p.Disk.Size < leastDisk {
			out = append(out, Problem{Path: pool + ".disk.size", Reason: p.Disk.Size.String() + " is too small for a file system", Expected: leastDisk.String() + " or more"})
		}
		if p.Memory > 0 && p.Memory < leastMemory {
			out = append(out, Problem{Path: pool + ".memory", Reason: p.Memory.String() + " is too little for a host", Expected: leastMemory.String() + " or more"})
		}
		if p.CPUs > 0 && p.CPUs < leastCPUs {
			out = append(out, Problem{Path: pool + ".cpus", Reason: fmt.Sprintf("%g is less than the kernel can give", p.CPUs), Expected: fmt.Sprintf("%g or more", leastCPUs)})
		}
		return out
	}
}

func checkReplication(c *Cell) []Problem {
	n := c.BrokerCount()
	if n < 1 || c.Bench.ReplicationFactor <= n {
		return nil
	}
	return []Problem{{Path: "bench.replication_factor", Reason: fmt.Sprintf("%d replicas need as many brokers", c.Bench.ReplicationFactor), Expected: fmt.Sprintf("at most %d, the number of brokers", n)}}
}

func checkClients(c *Cell) []Problem {
	producers, consumers := c.Resolve(c.Bench.Producers), c.Resolve(c.Bench.Consumers)
	switch {
	case c.WorkerCount() < 1 || producers > 0:
		return nil
	case consumers > 0:
		return []Problem{{Path: "bench.consumers", Reason: "there are no records to read without producers", Expected: "bench.producers above 0"}}
	}
	return []Problem{{Path: "bench.producers", Reason: "without producers and consumers there is no load", Expected: "1 or more, such as 1 per worker"}}
}

func checkEnd(c *Cell) []Problem {
	switch b := c.Bench; {
	case b.Records.Set && b.Duration > 0:
		return []Problem{{Path: "bench.duration", Reason: "stands beside records, and each would end the load", Expected: "one of the two"}}
	case !b.Records.Set && b.Duration < Duration(time.Second):
		return []Problem{{Path: "bench.duration", Reason: b.Duration.String() + " is too short to see anything", Expected: "1s or more"}}
	}
	return nil
}

func checkLimit(c *Cell) []Problem {
	b := c.Bench
	if b.Limit == 0 || b.Limit > b.Warmup+b.Duration {
		return nil
	}
	return []Problem{{Path: "bench.limit", Reason: fmt.Sprintf("%s would end the repeat inside its %s of load", b.Limit, b.Warmup+b.Duration), Expected: "more than warmup and duration together"}}
}

func checkInterval(c *Cell) []Problem {
	i, load := time.Duration(c.Collect.Interval), c.Bench.Duration
	switch whole := i >= time.Second && i%time.Second == 0; {
	case whole && load >= Duration(time.Second) && c.Collect.Interval > load:
		return []Problem{{Path: "collect.interval", Reason: fmt.Sprintf("%s is longer than the load of %s, which no sample would see", c.Collect.Interval, load), Expected: "less than bench.duration"}}
	case whole:
		return nil
	}
	return []Problem{{Path: "collect.interval", Reason: c.Collect.Interval.String() + " is not possible", Expected: "whole seconds, 1s or more"}}
}

// checkSpace refuses records that the fullest broker's disk cannot hold.
func checkSpace(c *Cell) []Problem {
	size := float64(c.BrokerDisk().Size)
	need := float64(c.LoadBytes()) * c.fullest()
	if size == 0 || need <= diskUse*size {
		return nil
	}
	return []Problem{{Path: "bench.records",
		Reason: fmt.Sprintf("%d records of %s in %d replicas take up to %s on one broker, whose disk has %s", c.Resolve(c.Bench.Records), c.Bench.RecordSize,
			c.Bench.ReplicationFactor, roughly(need), c.BrokerDisk().Size),
		Expected: fmt.Sprintf("at most %.0f %% of the disk: fewer records, a larger disk or more partitions and brokers", 100*diskUse)}}
}

func roughly(bytes float64) string { return fmt.Sprintf("%.1fGiB", bytes/(1<<30)) }
