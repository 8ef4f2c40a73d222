package hoststat

// Ask is what krig tells an agent to collect.
type Ask struct {
	Dir      string   `json:"dir"`             // on the host; made by the agent
	Interval int      `json:"interval"`        // whole seconds
	Limit    int      `json:"limit"`           // seconds after which everything ends by itself
	Disks    []string `json:"disks"`           // device paths that are watched
	Real     bool     `json:"real,omitempty"`  // it keeps the machine's real disks too
	Cgroup   bool     `json:"cgroup"`          // the host is a cgroup: CPU and memory are that
	Path     string   `json:"path,omitempty"`  // the cgroup below each controller's mount, where the whole tree is mounted
	Watch    string   `json:"watch,omitempty"` // directory whose file system's free space is watched

	Collectors []string `json:"collectors"` // names of Collectors
}

// Messages of a running collect verb.
const (
	Ready  = "ready" // every collector runs; no body
	Hole   = "hole"  // a collector died: body is a sentence
	Level  = "level" // body is an Own, each interval
	Filled = "files" // body is Files, the last message
)

// Files is what lies in the directory when collecting has ended.
type Files struct {
	Names   []string `json:"names"`
	Expect  int      `json:"expect"`  // samples that each tool should have taken
	Devices []string `json:"devices"` // the kernel's names of the disks asked for
	Cost    *float64 `json:"cost"`    // s of processor time a second that the collectors and the agent's samples took; nil when not known
}
