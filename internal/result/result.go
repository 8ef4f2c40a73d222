// Package result is the versioned schema of what a run measured: measures,
// units, phases, series and warnings, as they stand in result.json and
// series.json of a run directory. It computes no statistics and draws nothing.
package result

import (
	"strings"
	"time"
)

// Schema is the version written into every file of this package.
const Schema = 1

// Units. Files carry base units only; text and pictures choose their own.
const (
	Seconds          = "s"
	Bytes            = "B"
	BytesPerSecond   = "B/s"
	RecordsPerSecond = "records/s"
	Records          = "records"
	Ratio            = "1"
)

// Status of a repeat.
type Status string

// The statuses. An invalid repeat was measured and is shown, never averaged
// in; a failed one has no measures worth showing.
const (
	Valid   Status = "valid"
	Invalid Status = "invalid"
	Failed  Status = "failed"
)

// Marks that a valid repeat may carry.
const (
	LimitedByGenerator  = "limited by the generator"
	LimitedByLabMachine = "limited by the lab machine"
	NotSustained        = "not sustained"
	AtSaturation        = "latency at saturation"
	NotAligned          = "processes overlapped by less than 90 %"
)

// Run is the whole run: result.json at the top of a run directory.
type Run struct {
	Schema   int       `json:"schema"`
	Run      string    `json:"run"`
	Name     string    `json:"name"`
	Krig     string    `json:"krig"` // krig's own version
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Seed     uint64    `json:"seed"`
	Order    string    `json:"order"`
	Cells    []Cell    `json:"cells"`
	Warnings []string  `json:"warnings"`
	Answer   []string  `json:"answer,omitempty"` // the plain sentences that the report begins with
}

// Cell is one point of the matrix with its repeats.
type Cell struct {
	ID      string             `json:"id"`
	Axes    map[string]string  `json:"axes"`
	Repeats []Repeat           `json:"repeats"`
	Earlier []Repeat           `json:"earlier,omitempty"` // attempts that came to nothing before the repeat of the same number; never averaged in
	Missing []int              `json:"missing,omitempty"` // repeats that were planned and never written
	Summary map[string]Summary `json:"summary"`           // over valid repeats
	Limit   string             `json:"limit,omitempty"`   // what was at its limit with its figures, or that it is not determined
}

// Repeat is one measurement of one cell, complete: result.json in
// cells/<cell>/<repeat>/.
type Repeat struct {
	Schema   int                   `json:"schema"`
	Cell     string                `json:"cell"`
	Repeat   int                   `json:"repeat"`  // from 1
	Attempt  int                   `json:"attempt"` // from 1; above 1 after invalid ones
	Rig      string                `json:"rig"`
	RigState int                   `json:"rig_state"` // n of rigs/<rig>/<n>
	Cluster  int                   `json:"cluster"`   // m of clusters/<m>.json
	Status   Status                `json:"status"`
	Reason   string                `json:"reason,omitempty"` // why it is not valid
	Marks    []string              `json:"marks"`
	Warnings []string              `json:"warnings"`
	Started  time.Time             `json:"started"`
	Ended    time.Time             `json:"ended"`
	Phases   []Phase               `json:"phases"`
	Measures Measures              `json:"measures"`
	Hosts    map[string]HostResult `json:"hosts"`              // by host name; the lab machine itself is "machine"
	Load     []string              `json:"load"`               // how the load was produced and what its figures mean, as sentences
	Commands []Command             `json:"commands,omitempty"` // the tools that produced it
	Client   Client                `json:"client"`
	Settle   Settle                `json:"settle"`
}

// Command is one process of a tool that produced load.
type Command struct {
	Process string   `json:"process"` // such as "producer 1"
	Host    string   `json:"host"`
	Argv    []string `json:"argv"`
}

func (c Command) String() string {
	return c.Process + " on " + c.Host + ": " + strings.Join(c.Argv, " ")
}

// Client is the settings of the load's clients, by Kafka's names. What is in
// neither map is as the driver has it.
type Client struct {
	Producer   map[string]string `json:"producer,omitempty"` // asked
	Consumer   map[string]string `json:"consumer,omitempty"` // asked
	NotApplied []NotApplied      `json:"not_applied,omitempty"`
}

// NotApplied is a setting that was asked and has no effect, or another one
// than in Kafka's own client.
type NotApplied struct {
	Key    string `json:"key"` // of an experiment: producer.linger.ms
	Asked  string `json:"asked"`
	Reason string `json:"reason"` // a sentence without its subject: "has no effect in the native driver"
}

func (n NotApplied) String() string { return n.Key + "=" + n.Asked + " " + n.Reason }

// Settle is what the wait after this repeat ended with.
type Settle struct {
	Seconds float64 `json:"seconds"`
	Residue string  `json:"residue,omitempty"` // what was not quiet when the wait's limit was reached
}

// Phase is a span of the load on krig's clock. Names: warmup, steady, backlog, drain.
type Phase struct {
	Name  string    `json:"name"`
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// HostResult is one host's own measures in the steady phase.
type HostResult struct {
	Measures Measures `json:"measures"`
	Lost     string   `json:"lost,omitempty"` // why some of its files are missing or have holes
}

// Measures are named values, such as "produce.latency.p99".
type Measures map[string]Measure

// Measure is one number in base units. A nil Value is unknown, and Reason says why.
type Measure struct {
	Value  *float64 `json:"value"`
	Unit   string   `json:"unit"`
	Reason string   `json:"reason,omitempty"`
}

// Set stores a known value.
func (m Measures) Set(name string, value float64, unit string) {
	m[name] = Measure{Value: &value, Unit: unit}
}

// SetUnknown stores that a value is not known, and why.
func (m Measures) SetUnknown(name, unit, reason string) {
	m[name] = Measure{Unit: unit, Reason: reason}
}

// Get returns a value and whether it is there and known.
func (m Measures) Get(name string) (float64, bool) {
	if v := m[name].Value; v != nil {
		return *v, true
	}
	return 0, false
}

// Summary is a measure over a cell's valid repeats.
type Summary struct {
	Median *float64 `json:"median"`
	Mean   *float64 `json:"mean"`
	Low    *float64 `json:"low"`  // of the 95 % interval; nil when there is none
	High   *float64 `json:"high"` // of the 95 % interval; nil when there is none
	N      int      `json:"n"`
	Method string   `json:"method"` // how the interval was made, or why there is none
	Unit   string   `json:"unit"`
}

// SeriesFile is series.json of a repeat: every series of load and hosts on one
// UTC axis, from the start of the collectors to their end.
type SeriesFile struct {
	Schema int      `json:"schema"`
	Phases []Phase  `json:"phases"`
	Series []Series `json:"series"`
}

// Series is one measure over time. The value at Times[i] covers the interval
// that ends there; nil is a hole.
type Series struct {
	Name   string     `json:"name"` // a measure's name, such as "disk.write"
	Host   string     `json:"host"` // "" for the load as a whole
	Unit   string     `json:"unit"`
	Times  []float64  `json:"times"` // seconds since the epoch, ascending
	Values []*float64 `json:"values"`
}
