package rundir

import (
	"slices"
	"time"
)

// Role is what a host does in a rig.
type Role string

// The roles. A host may hold several.
const (
	Broker     Role = "broker"
	Controller Role = "controller"
	Worker     Role = "worker"
)

// A Host is one machine of a rig, as infra hands it on: a plain value with no
// live connection in it.
type Host struct {
	Name     string  `json:"name"`               // b1, b2, ..., c1, w1: unique in the rig
	ID       string  `json:"id,omitempty"`       // the provider's own for this very host; "" when it has none
	Provider string  `json:"provider,omitempty"` // where it comes from: lab, ...
	Type     string  `json:"type,omitempty"`     // the provider's word for its size
	Zone     string  `json:"zone,omitempty"`     // where in the provider's region it is
	Roles    []Role  `json:"roles"`
	SSH      SSH     `json:"ssh"`
	Internal string  `json:"internal"`           // address that Kafka's listeners use
	Kernel   string  `json:"kernel"`             // boot id: hosts that share a kernel share it
	Arch     string  `json:"arch"`               // GOARCH's words: amd64, arm64
	Disks    []Disk  `json:"disks"`              // data disks; empty when there are none
	LinkRate int64   `json:"link_rate"`          // bits/s in each direction; 0 when not shaped
	CPUs     float64 `json:"cpus"`               // processors it may use; 0 when not limited
	Memory   int64   `json:"memory"`             // bytes it may use
	Lab      bool    `json:"lab"`                // lives on this machine, which is collected beside it
	Cgroup   string  `json:"cgroup,omitempty"`   // a container's: its cgroup's path below each controller's mount, for CPU and memory figures
	LinkName string  `json:"link_name"`          // its network device, such as eth0
	OwnProc  bool    `json:"own_proc,omitempty"` // a container's: /proc shows its own CPU and memory figures (lxcfs)
}

// Has tells whether the host holds a role.
func (h Host) Has(r Role) bool {
	for _, have := range h.Roles {
		if have == r {
			return true
		}
	}
	return false
}

// SharesKernel tells whether the host runs on this machine's own kernel:
// nothing that a kernel shares may be changed there, its pages, devices and
// clock are this machine's.
func (h Host) SharesKernel() bool {
	boot, err := BootID()
	return err == nil && h.Kernel == boot
}

// Same tells whether two values are of one and the same host: made once, not again since.
func (h Host) Same(o Host) bool {
	return h.Name == o.Name && h.ID == o.ID && slices.Equal(h.SSH.HostKey, o.SSH.HostKey)
}

// SSH is how krig reaches a host. Local hosts (this machine) have an empty Address.
type SSH struct {
	Address string   `json:"address"`
	Port    int      `json:"port"`
	User    string   `json:"user"`
	KeyFile string   `json:"key_file"`        // private key, relative to the run directory, or an absolute path; the only key tried. "" asks the agent for any
	Agent   bool     `json:"agent,omitempty"` // the user's ssh-agent may be asked: for KeyFile's key when that cannot be read without it, for any key when there is no KeyFile
	HostKey []string `json:"host_key"`        // authorized_keys form; only these are accepted
	Jump    *SSH     `json:"jump,omitempty"`  // the host through which this one is reached; nil is directly
}

// A Disk is one block device that the provider attached for data.
type Disk struct {
	ID      string `json:"id"`      // how the provider attached it, by which it is told from others: the lab's is its backing file
	Device  string `json:"device"`  // path on the host, such as /dev/loop3
	Size    int64  `json:"size"`    // bytes
	Profile string `json:"profile"` // none, ssd, hdd or custom
	Write   int64  `json:"write"`   // bytes/s; 0 when not throttled
	Read    int64  `json:"read"`    // bytes/s; 0 when not throttled
	IOPS    int    `json:"iops"`    // operations/s; 0 when not throttled
}

// Prepared is what provision.Prepare made of a rig's hosts.
type Prepared struct {
	Hosts []PreparedHost `json:"hosts"`
}

// PreparedHost is one host, ready for Kafka and for the bench.
type PreparedHost struct {
	Name         string   `json:"name"`
	Facts        Facts    `json:"facts"`
	Dir          string   `json:"dir"`          // krig's own directory on the host
	Agent        string   `json:"agent"`        // path of krig-agent
	Java         string   `json:"java"`         // path of the java program
	Kafka        string   `json:"kafka"`        // directory with the distribution's jars
	Distribution string   `json:"distribution"` // which it is, by its name in krig's cache
	DataDir      string   `json:"data_dir"`     // mount point of the data disk; "" without one
	Install      []string `json:"install"`      // packages that krig installed
}

// Facts are what a host said of itself before anything was changed.
// A pointer that is nil is unknown.
type Facts struct {
	OS         string            `json:"os"`
	Kernel     string            `json:"kernel"`
	CPUModel   string            `json:"cpu_model"`
	Processors int               `json:"processors"`
	Memory     int64             `json:"memory"`
	FreeSpace  int64             `json:"free_space"` // bytes, where krig's directory will be
	Java       string            `json:"java"`       // version; "" when there is none
	JavaMajor  int               `json:"java_major"`
	Sysstat    string            `json:"sysstat"`   // version; "" when there is none
	JVMStart   float64           `json:"jvm_start"` // seconds that one JVM start took: time limits scale with it
	Offset     float64           `json:"offset"`    // seconds that its clock is ahead of this machine's
	Extra      map[string]string `json:"extra,omitempty"`
}

// Machine is the name of this machine among hosts.
const Machine = "machine"

// Limits are the probed limits of a rig's hardware. Where nothing was probed it is empty.
type Limits struct {
	Hosts map[string]HostLimits `json:"hosts"`
}

// HostLimits are one host's: bytes/s, nil when not known. Source says where
// from ("profile", "shaped", "probe").
type HostLimits struct {
	DiskWrite  *float64 `json:"disk_write"`
	DiskRead   *float64 `json:"disk_read"`
	Network    *float64 `json:"network"`
	DiskSource string   `json:"disk_source"`
	NetSource  string   `json:"network_source"`
}

// A Cluster is a running Kafka: the m-th on the n-th state of a rig.
type Cluster struct {
	ID          string    `json:"id"` // Kafka's cluster id
	Version     string    `json:"version"`
	Mode        string    `json:"mode"`
	Brokers     []Node    `json:"brokers"`
	Controllers []Node    `json:"controllers"`
	Warnings    []string  `json:"warnings"` // asked and effective settings that differ in meaning, and their like
	Started     time.Time `json:"started"`
}

// A Node is one Kafka process.
type Node struct {
	ID        int32             `json:"id"`
	Name      string            `json:"name"` // of its process and files, such as broker-1
	Host      string            `json:"host"`
	Listener  string            `json:"listener"` // host:port on the internal address
	PID       int               `json:"pid"`
	LogDirs   []string          `json:"log_dirs"`            // where its partitions are; at least one
	LogFile   string            `json:"log_file"`            // its own log, on the host
	Asked     map[string]string `json:"asked,omitempty"`     // server.properties as krig wrote it
	Effective map[string]string `json:"effective,omitempty"` // read back through the admin API
}

// Bootstrap is the brokers' listeners.
func (c Cluster) Bootstrap() []string {
	out := make([]string, len(c.Brokers))
	for i, b := range c.Brokers {
		out[i] = b.Listener
	}
	return out
}
