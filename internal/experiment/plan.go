package experiment

// Cost says what must be done again when a value changes between two cells. It stands as a tag beside each key.
type Cost int

// The costs, from cheapest to dearest.
const (
	Live    Cost = iota // nothing: it counts from the next repeat
	Client              // clients are started anew, as they are for each repeat
	Topic               // topics are made anew, as they are for each repeat
	Cluster             // Kafka is stopped, wiped, configured and started
	Prepare             // hosts are prepared again
	Infra               // hosts are made again
)

// A Plan is everything a run will do, in order.
type Plan struct {
	Name   string  `json:"name"`
	Seed   uint64  `json:"seed"`
	Order  string  `json:"order"`
	Cells  []*Cell `json:"cells"`
	Visits []Visit `json:"visits"`
}

// A Visit is one repeat of one cell. The visits of a plan are in the order in
// which they are made; what must change between two of them is [Between].
type Visit struct {
	Cell   int `json:"cell"`   // index into Plan.Cells
	Repeat int `json:"repeat"` // from 1
}

// A Cell is one point of the matrix with every value resolved and every
// default applied. It is read, never changed.
type Cell struct {
	ID      string   `json:"id"`   // unique in the plan, fit for a directory's name
	Axes    []Axis   `json:"axes"` // in the matrix's order; empty without a matrix
	RigName string   `json:"rig_name"`
	Rig     Rig      `json:"rig"`
	Kafka   Kafka    `json:"kafka"`
	Bench   Bench    `json:"bench"`
	Collect Collect  `json:"collect"`
	Limit   Duration `json:"limit"`
}

// An Axis is one varied path as spelled in the matrix, and its value in one
// cell as written in the file ("default" for null).
type Axis struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// A Transition says what must happen before cell b can be measured where cell
// a was. At most one of Infra, Prepare, Cluster and Resize holds.
type Transition struct {
	Anew    bool     // another rig, provider, engine or module: all hosts go before new ones are made
	Infra   bool     // hosts change in more than their number: cluster stopped, hosts made again
	Prepare bool     // hosts stay, are prepared again, cluster anew
	Cluster bool     // hosts stay, the cluster is wiped and started anew (also with changed counts, when the quorum changes with them)
	Resize  bool     // only the number of brokers or workers changes: the cluster stands, grows or shrinks
	Paths   []string // the paths that differ, sorted
}

// A Block is axes that are all combined with one another.
type Block []BlockAxis

// A BlockAxis is one line of a block: one path with its values, or several
// paths that change together.
type BlockAxis struct {
	Paths  []string
	Values [][]string // one row a value, one column a path; as written
}
