package hoststat

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Starts is how often a collector is started in all, were it to die.
const Starts = 2

// Collector is one tool that watches hosts. There is one file for each, and a
// line in Collectors.
type Collector struct {
	Name    string // in Ask.Collectors; its files are called so
	Package string // of the distribution, that it comes with
	Raw     string // extension of the file that it writes
	Ext     string // extension of the file that Read takes

	// Argv is its command line; file is the path to write to.
	Argv func(a Ask, devices []string, file string) []string
	// Stdout is of a tool that writes to standard output, which goes to the file.
	Stdout bool
	// Convert is the command that prints what a Raw file holds as Read takes it. It
	// runs on the host, whose release of the tool wrote the file. It is nil where
	// Raw is Ext.
	Convert func(file string) []string
	// Read reads a file. A measure of a device, interface or process group
	// has it in Series.Of.
	Read func(r io.Reader, h Watched) (*Reading, error)

	Kernel bool // what it reads of no device is of the whole kernel, which lab hosts share
	Disks  bool // it watches disks alone
	Sparse bool // it leaves out what was idle: its samples cannot be counted
}

// Watched is what a reader must know of the host that a file comes from.
type Watched struct {
	CPUs     float64       // that it may use; 0 when not limited
	LinkRate int64         // bits/s in each direction; 0 when not known
	Interval time.Duration // between two samples
}

// Collectors are all collectors.
func Collectors() []Collector { return []Collector{sar(), iostat(), pidstat()} }

// Asked are the collectors of an Ask. An unknown name is an error.
func Asked(a Ask) ([]Collector, error) {
	var out []Collector
	for _, c := range Collectors() {
		if slices.Contains(a.Collectors, c.Name) {
			out = append(out, c)
		}
	}
	if len(out) != len(a.Collectors) {
		return nil, fmt.Errorf("not all collectors are known of %s", strings.Join(a.Collectors, ", "))
	}
	return out, nil
}

// File is the name of the file of a collector's n-th start, with an extension.
func (c Collector) File(n int, ext string) string {
	if n > 1 {
		return fmt.Sprintf("%s.%d%s", c.Name, n, ext)
	}
	return c.Name + ext
}

// OwnSamples reads what the agent itself samples on every host.
func OwnSamples() Collector {
	return Collector{Name: "own", Raw: ".jsonl", Ext: ".jsonl", Read: func(r io.Reader, h Watched) (*Reading, error) {
		return ReadOwn(r, h.CPUs)
	}}
}
