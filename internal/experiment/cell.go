package experiment

import (
	"cmp"
	"math"
	"math/bits"
	"time"
)

// controllerHeap is what a controller process of its own takes of its host.
const controllerHeap Bytes = 256 << 20

// A Quorum says which processes are the KRaft controllers: one on each of the
// first Count hosts of the pool. Where Combined holds, these are the brokers
// themselves.
type Quorum struct {
	Pool     string // brokers, controllers or workers: the pool whose own hosts hold them
	Count    int
	Combined bool
}

// profileRates are the bytes a second that a lab disk's profile writes and
// reads; 0 is not throttled.
func profileRates(profile string) (write, read Rate) {
	switch profile {
	case "ssd":
		return 30 << 20, 60 << 20
	case "hdd":
		return 12 << 20, 24 << 20
	}
	return 0, 0
}

// resolved gives a pool's disk the figures that its profile stands for; one
// with figures of its own has the profile custom.
func (p Pool) resolved() Pool {
	d := &p.Disk
	switch {
	case d.Profile != "" && d.Write == 0 && d.Read == 0:
		d.Write, d.Read = profileRates(d.Profile)
	case d.Profile == "" && d.Size > 0:
		d.Profile = "custom"
	}
	return p
}

// exists tells whether the file has the pool.
func (p Pool) exists() bool { return p.Count > 0 || p.On != "" }

func (r Rig) pool(name string) Pool {
	switch name {
	case "brokers":
		return r.Brokers
	case "controllers":
		return r.Controllers
	case "workers":
		return r.Workers
	}
	return Pool{}
}

func poolNames() []string { return []string{"brokers", "controllers", "workers"} }

// owner follows on: to the pool that has the hosts, and gives it with the
// number of hosts that the named pool uses of it, from the first. A circle,
// which the checks refuse, ends with 0.
func (r Rig) owner(name string) (string, int) {
	count := math.MaxInt
	for range poolNames() {
		p := r.pool(name)
		if p.Count > 0 {
			count = min(count, p.Count)
		}
		if p.On == "" {
			return name, min(count, p.Count)
		}
		name = p.On
	}
	return name, 0
}

// Hosts is the number of hosts that each pool (brokers, controllers, workers)
// has of its own in this cell; a pool that shares another's hosts has none.
func (c *Cell) Hosts() map[string]int {
	out := make(map[string]int)
	for _, name := range poolNames() {
		out[name] = 0
		if p := c.Rig.pool(name); p.On == "" {
			out[name] = p.Count
		}
	}
	return out
}

// BrokerCount is the number of brokers, at least 1.
func (c *Cell) BrokerCount() int {
	_, n := c.Rig.owner("brokers")
	return n
}

// WorkerCount is the number of hosts that produce and consume, at least 1.
func (c *Cell) WorkerCount() int {
	_, n := c.Rig.owner("workers")
	return n
}

// Quorum says where the controllers are. Without a pool of controllers it is
// one process of its own on the first broker's host.
func (c *Cell) Quorum() Quorum {
	if c.Kafka.Mode == "combined" {
		pool, n := c.Rig.owner("brokers")
		return Quorum{Pool: pool, Count: n, Combined: true}
	}
	if !c.Rig.Controllers.exists() {
		pool, _ := c.Rig.owner("brokers")
		return Quorum{Pool: pool, Count: 1}
	}
	pool, n := c.Rig.owner("controllers")
	return Quorum{Pool: pool, Count: n}
}

// Resolve turns a count into a number for this cell; 0 for one that is not
// set. What is per topic or per producer uses the bench's own topics or producers.
func (c *Cell) Resolve(n Count) int64 {
	of := int64(1)
	switch n.Per {
	case "broker":
		of = int64(c.BrokerCount())
	case "worker":
		of = int64(c.WorkerCount())
	case "topic":
		of = c.Resolve(c.Bench.Topics)
	case "producer":
		of = c.Resolve(c.Bench.Producers)
	}
	return times(n.N, of)
}

// Replicas is the number of partition replicas over all topics and brokers.
func (c *Cell) Replicas() int64 {
	return times(times(c.Resolve(c.Bench.Topics), c.Resolve(c.Bench.Partitions)), int64(c.Bench.ReplicationFactor))
}

// BrokerDisk is the data disk of each broker, with its profile's figures;
// its Size is 0 where brokers have none of their own.
func (c *Cell) BrokerDisk() Disk {
	pool, _ := c.Rig.owner("brokers")
	return c.Rig.pool(pool).Disk
}

// LoadBytes is what the measured records of one repeat take on all brokers
// together, replicas and Kafka's overhead included, uncompressed; 0 where the
// load does not end by records.
func (c *Cell) LoadBytes() int64 {
	records := c.Resolve(c.Bench.Records)
	if records == 0 || c.Resolve(c.Bench.Producers) == 0 {
		return 0
	}
	return times(times(records, int64(c.Bench.RecordSize)+recordOverhead), int64(c.Bench.ReplicationFactor))
}

// LoadTime is how long one load should last, its warm-up included: as the
// bench says, or by its records at the asked rate and at write, the B/s that all
// brokers write together.
func (c *Cell) LoadTime(write float64) time.Duration {
	b := c.Bench
	warmup := time.Duration(b.Warmup)
	if !b.Records.Set {
		return warmup + time.Duration(b.Duration)
	}
	seconds := float64(c.LoadBytes()) / write
	if b.Rate.Value > 0 {
		seconds = max(seconds, float64(c.Resolve(b.Records))/b.Rate.Value)
	}
	return warmup + time.Duration(seconds*float64(time.Second))
}

// recordOverhead is what a record takes in the log beside its value: length,
// attributes, time and offset deltas, and its share of the batch header and
// the index.
const recordOverhead = 16

// fullest is the share of all replicas, from 0 to 1, that lies on the broker
// with the most of them when they are spread evenly.
func (c *Cell) fullest() float64 {
	replicas, brokers := c.Replicas(), int64(c.BrokerCount())
	if replicas == 0 || brokers == 0 {
		return 1
	}
	return float64((replicas+brokers-1)/brokers) / float64(replicas)
}

// times multiplies and stays at the largest number instead of overflowing.
// Both are at least 0.
func times(a, b int64) int64 {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(low)
}

// compareCounts orders cells by their number of brokers, then of workers.
func compareCounts(a, b *Cell) int {
	return cmp.Or(cmp.Compare(a.BrokerCount(), b.BrokerCount()), cmp.Compare(a.WorkerCount(), b.WorkerCount()))
}
