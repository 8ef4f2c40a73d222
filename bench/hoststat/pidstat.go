package hoststat

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"krig/internal/result"
)

// processesMax bounds the commands of one file.
const processesMax = 200

// ReadPidstat reads what `pidstat -h -H -u -r -d` printed: of each command, over all processes
// of that name, process.cpu (processors), process.memory, process.read and
// process.write. pidstat lists processes that did something: one that is not
// in a sample has no value there.
func ReadPidstat(r io.Reader) (*Reading, error) {
	p := &pidstatReader{t: newTable(1), commands: map[string]bool{}, sums: map[string]*process{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, textMax)
	for lines.Scan() {
		p.line(lines.Text())
	}
	p.flush()
	out := &Reading{Samples: p.samples}
	return finish(p.t, out, false, lines.Err())
}

// process is one command's sums in one sample.
type process struct{ cpu, memory, read, write float64 }

type pidstatReader struct {
	t        *table
	columns  []string
	at, last float64
	samples  int
	commands map[string]bool
	order    []string
	sums     map[string]*process
}

func (p *pidstatReader) line(text string) {
	f := strings.Fields(text)
	if len(f) > 1 && f[0] == "#" {
		p.columns = f[1:]
		return
	}
	if len(p.columns) == 0 || len(f) < len(p.columns) {
		return
	}
	at, err := strconv.ParseFloat(f[0], 64)
	if err != nil || at < 1e9 || at > 1e11 { // not seconds since the epoch
		return
	}
	if at != p.at {
		p.flush()
		p.at = at
	}
	p.add(f)
}

// add takes one process' row. A command may hold spaces: it is the last column.
func (p *pidstatReader) add(f []string) {
	row := map[string]float64{}
	for i, name := range p.columns[:len(p.columns)-1] {
		if v, err := strconv.ParseFloat(strings.Replace(f[i], ",", ".", 1), 64); err == nil && v >= 0 {
			row[name] = v
		}
	}
	command := f[len(p.columns)-1]
	if !p.commands[command] {
		if len(p.commands) >= processesMax {
			p.t.warn(fmt.Sprintf("more than %d commands: the others are left out", processesMax))
			return
		}
		p.commands[command] = true
	}
	s := p.sums[command]
	if s == nil {
		s = &process{}
		p.sums[command] = s
		p.order = append(p.order, command)
	}
	s.cpu += row["%CPU"] / 100
	s.memory += row["RSS"] * 1024
	s.read += row["kB_rd/s"] * 1024
	s.write += row["kB_wr/s"] * 1024
}

// flush ends a sample.
func (p *pidstatReader) flush() {
	if len(p.sums) == 0 {
		return
	}
	p.samples++
	length := 1.0
	if p.last > 0 {
		length = p.at - p.last
	}
	p.last = p.at
	for _, command := range p.order {
		s := p.sums[command]
		p.t.add("process.cpu", command, result.Ratio, p.at, length, ptr(s.cpu))
		p.t.add("process.memory", command, result.Bytes, p.at, length, ptr(s.memory))
		p.t.add("process.read", command, result.BytesPerSecond, p.at, length, ptr(s.read))
		p.t.add("process.write", command, result.BytesPerSecond, p.at, length, ptr(s.write))
	}
	clear(p.sums)
	p.order = p.order[:0]
}

// pidstat is the collector of processes, by command.
func pidstat() Collector {
	return Collector{
		Name: "pidstat", Package: "sysstat", Raw: ".txt", Ext: ".txt", Stdout: true, Sparse: true,
		Argv: func(a Ask, _ []string, _ string) []string {
			return []string{"pidstat", "-h", "-H", "-u", "-r", "-d", strconv.Itoa(a.Interval)}
		},
		Read: func(r io.Reader, _ Watched) (*Reading, error) { return ReadPidstat(r) },
	}
}
