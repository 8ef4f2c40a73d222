// Package experiment owns the experiment file: its keys, units, defaults,
// checks, matrix and plan, and the JSON Schema made from its types.
//
// It contacts nothing and changes nothing. Its product is a [Plan]: cells with
// every value resolved, and the order in which they are measured.
package experiment

// An Experiment is the whole file, as written, with defaults applied.
//
// Struct tags carry what the reader, the plan, the schema and the generated
// reference need: yaml and json are the key, doc its one-line description, cost what a
// change of it between two cells costs (see [Cost]), default what holds when
// it is not written (defaults: for each provider), enum the values it may take,
// only the providers whose hosts have it.
type Experiment struct {
	Version int            `yaml:"version" json:"version" doc:"version of the file format" enum:"1" required:"true"`
	Name    string         `yaml:"name" json:"name" doc:"names the run directory and the report; letters, digits, - and _" required:"true"`
	Rigs    map[string]Rig `yaml:"rigs" json:"rigs" doc:"the sets of hosts to measure on; with several, rig is an axis" required:"true" cost:"infra"`
	Kafka   Kafka          `yaml:"kafka" json:"kafka" doc:"which Kafka runs on the rig, and how" cost:"cluster"`
	Bench   []Bench        `yaml:"bench" json:"bench" doc:"what to measure: one, or a list (then bench is an axis)" required:"true" cost:"topic" single:"true"`
	Matrix  []Block        `yaml:"matrix" json:"matrix" doc:"axes to vary: one block, or a list of blocks (their union)" single:"true"`
	Repeat  int            `yaml:"repeat" json:"repeat" doc:"how often each cell is measured" default:"1" min:"1"`
	Retries int            `yaml:"retries" json:"retries" doc:"how often an invalid repeat is tried again" default:"1" min:"0"`
	Order   string         `yaml:"order" json:"order" doc:"blocked visits each cluster state once; rounds makes each repeat one pass over all cells" default:"blocked" enum:"blocked,rounds"`
	Seed    uint64         `yaml:"seed" json:"seed" doc:"seed of every shuffle; chosen and recorded when not given"`
	Limit   Duration       `yaml:"limit" json:"limit" doc:"wall clock of the whole run; at it the run stops and tears down" min:"1"`
	Collect Collect        `yaml:"collect" json:"collect" doc:"what watches the hosts during each repeat" cost:"live"`
}

// A Rig is one set of hosts.
type Rig struct {
	Provider    string `yaml:"provider" json:"provider" doc:"where the hosts come from" enum:"lab,module" required:"true"`
	Engine      string `yaml:"engine" json:"engine" doc:"what creates the hosts: krig itself, terraform or tofu, or pulumi" defaults:"lab=direct,module=terraform" enum:"direct,terraform,pulumi"`
	Brokers     Pool   `yaml:"brokers" json:"brokers" doc:"the hosts that run Kafka brokers"`
	Controllers Pool   `yaml:"controllers" json:"controllers" doc:"the hosts that run KRaft controllers; without it one controller process on the first broker's host"`
	Workers     Pool   `yaml:"workers" json:"workers" doc:"the hosts that produce and consume"`
	Module      Module `yaml:"module" json:"module,omitzero" doc:"provider module: your own Terraform that makes the hosts"`
}

// A Pool is the hosts of one role. Exactly one of Count and On places it:
// On names another pool whose hosts it shares, one on each, or Count of them
// from the first.
type Pool struct {
	Count   int     `yaml:"count" json:"count" doc:"number of hosts, or with on: how many of the named pool's hosts, from the first" min:"1"`
	On      string  `yaml:"on" json:"on" doc:"share the hosts of this pool instead of having hosts of its own" enum:"brokers,controllers,workers"`
	Disk    Disk    `yaml:"disk" json:"disk" doc:"the data disk that each host gets"`
	Network Network `yaml:"network" json:"network" doc:"each host's link"`
	CPUs    float64 `yaml:"cpus" json:"cpus" doc:"processors each host may use; unlimited when not given" only:"lab"`
	Memory  Bytes   `yaml:"memory" json:"memory" doc:"memory each host may use" defaults:"lab=2GiB" only:"lab"`
}

// A Disk is a data disk that the provider attaches. Only brokers get one
// unless another pool asks for it.
type Disk struct {
	Size    Bytes  `yaml:"size" json:"size" doc:"size of the disk; of a module's hosts the least that it must have" defaults:"lab=8GiB"`
	Profile string `yaml:"profile" json:"profile" doc:"speed by name: ssd writes 30MiB/s and reads 60MiB/s, hdd writes 12MiB/s and reads 24MiB/s, none is not throttled" defaults:"lab=none" enum:"none,ssd,hdd" only:"lab"`
	Write   Rate   `yaml:"write" json:"write" doc:"most bytes written a second, instead of a profile" only:"lab"`
	Read    Rate   `yaml:"read" json:"read" doc:"most bytes read a second, instead of a profile" only:"lab"`
	IOPS    int    `yaml:"iops" json:"iops" doc:"most operations a second in each direction" min:"1" only:"lab"`
}

// A Network is a host's link, shaped in both directions.
type Network struct {
	Rate BitRate `yaml:"rate" json:"rate" doc:"speed of the link in each direction, such as 1gbit; not shaped when not given" only:"lab"`
}

// Kafka says which Kafka runs and how.
type Kafka struct {
	Version string            `yaml:"version" json:"version" doc:"version of Kafka, 3.3 and later" default:"4.4.0" cost:"prepare"`
	Source  Source            `yaml:"source" json:"source" doc:"where the distribution comes from: maven, {archive, sha512} or {directory}" default:"maven" cost:"prepare"`
	Mode    string            `yaml:"mode" json:"mode" doc:"kraft has controllers of their own, combined runs controller and broker in one process" default:"kraft" enum:"kraft,combined"`
	Broker  map[string]string `yaml:"broker" json:"broker" doc:"broker settings by Kafka's own names"`
	JVM     JVM               `yaml:"jvm" json:"jvm" doc:"the brokers' Java virtual machine"`
}

// A Source is where the Kafka distribution comes from. In the file it is the
// word maven (the default) or a map with one of the two other keys.
type Source struct {
	Archive   string `yaml:"archive" json:"archive" doc:"a .tgz of Kafka: a path or a URL"`
	SHA512    string `yaml:"sha512" json:"sha512" doc:"the archive's SHA-512, in hexadecimal"`
	Directory string `yaml:"directory" json:"directory" doc:"an unpacked distribution on this machine"`
}

// JVM is the brokers' Java virtual machine.
type JVM struct {
	Heap  Bytes    `yaml:"heap" json:"heap" doc:"heap of each broker" default:"1GiB"`
	Flags []string `yaml:"flags" json:"flags" doc:"further flags of the Java virtual machine"`
}

// A Bench is one load to put on a cluster.
type Bench struct {
	Name              string            `yaml:"name" json:"name" doc:"names the bench where there are several"`
	Driver            string            `yaml:"driver" json:"driver" doc:"what produces the load: native is krig's own, perftest is Kafka's own performance tools" default:"native" enum:"native,perftest" cost:"client"`
	Topics            Count             `yaml:"topics" json:"topics" doc:"number of topics" default:"1" per:"broker,worker"`
	Partitions        Count             `yaml:"partitions" json:"partitions" doc:"partitions of each topic" default:"1" per:"broker,worker"`
	ReplicationFactor int               `yaml:"replication_factor" json:"replication_factor" doc:"replicas of each partition" default:"1" min:"1"`
	Producers         Count             `yaml:"producers" json:"producers" doc:"number of producers" default:"1 per worker" per:"broker,worker,topic" cost:"client" min:"0"`
	Consumers         Count             `yaml:"consumers" json:"consumers" doc:"number of consumers, one group a topic; default 0, 1 per worker with consumer:" per:"broker,worker,topic" cost:"client" min:"0"`
	RecordSize        Bytes             `yaml:"record_size" json:"record_size" doc:"size of each record's value" default:"1KiB" cost:"client" min:"1"`
	Records           Count             `yaml:"records" json:"records" doc:"records to send; without it the load lasts duration" per:"broker,worker,topic,producer" cost:"client"`
	Rate              SendRate          `yaml:"rate" json:"rate" doc:"records a second in all, or max" default:"max" cost:"client"`
	Warmup            Duration          `yaml:"warmup" json:"warmup" doc:"load before the measured window; default 5s, 0s with records" cost:"client"`
	Duration          Duration          `yaml:"duration" json:"duration" doc:"length of the measured window; default 30s without records" cost:"client" min:"1"`
	Limit             Duration          `yaml:"limit" json:"limit" doc:"how long one repeat may take in all; default ten times what it should" cost:"client" min:"1"`
	Producer          map[string]string `yaml:"producer" json:"producer" doc:"producer settings by Kafka's own names" cost:"client"`
	Consumer          map[string]string `yaml:"consumer" json:"consumer" doc:"consumer settings by Kafka's own names" cost:"client"`
}

// Collect says what watches the hosts.
type Collect struct {
	Interval Duration `yaml:"interval" json:"interval" doc:"time between two samples; whole seconds" default:"1s"`
	Sar      bool     `yaml:"sar" json:"sar" doc:"system activity: processors, memory, network, disks" default:"true"`
	Iostat   bool     `yaml:"iostat" json:"iostat" doc:"each disk's throughput and waits" default:"true"`
	Pidstat  bool     `yaml:"pidstat" json:"pidstat" doc:"the processes' use of processor, memory and disk" default:"false"`
}

// Problem is what a stage finds wrong with a cell: the dotted path of the key,
// what is wrong, and what was expected. [File.Locate] turns it into an *Error.
type Problem struct {
	Path     string // of the file; the rig's name and the bench's may be left out
	Reason   string
	Expected string
	Cell     string // the cell's ID; [File.Check] fills it in, so that a matrix value is found
}
