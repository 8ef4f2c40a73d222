package provision

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"krig/internal/remote"
	"krig/internal/rundir"
)

//go:embed facts.sh
var factsScript string

const factsLimit = 60 * time.Second

// survey is what one host said of itself, before anything was changed.
type survey struct {
	facts   rundir.Facts
	javas   []javaProgram
	tools   map[string]bool
	listens map[int]string // port → what holds it, as far as it can be told
	kafkas  []process      // running Kafka, krig's own of this run among them
	disks   map[string]diskState
}

type javaProgram struct {
	path  string
	full  string
	major int
	start time.Duration // one start of it
}

type process struct {
	pid  int
	argv string // with spaces between
}

// diskState is what a device holds.
type diskState struct {
	present bool
	holds   map[string]string // as blkid names things, with HOLDER, MOUNTED and SWAP
}

// surveyAll asks all hosts side by side. Hosts that cannot be asked are
// problems.
func surveyAll(ctx context.Context, f *remote.Fleet, l layout, hosts []rundir.Host) (map[string]*survey, []HostProblem) {
	var mu sync.Mutex
	out := map[string]*survey{}
	var problems []HostProblem
	ctx, cancel := context.WithTimeout(ctx, factsLimit)
	defer cancel()
	var wait sync.WaitGroup
	for _, h := range hosts {
		wait.Go(func() {
			s, err := surveyHost(ctx, f, l, h)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems = append(problems, HostProblem{h.Name, err.Error(), "krig must reach the host and be root there, or have sudo without a password"})
				return
			}
			out[h.Name] = s
		})
	}
	wait.Wait()
	return out, problems
}

func surveyHost(ctx context.Context, f *remote.Fleet, l layout, h rundir.Host) (*survey, error) {
	c, err := f.Conn(ctx, h.Name)
	if err != nil {
		return nil, err
	}
	args := []string{l.dir()}
	for _, d := range h.Disks {
		args = append(args, d.Device)
	}
	return askFacts(ctx, c, args...)
}

// askFacts runs the script with its arguments.
func askFacts(ctx context.Context, c *remote.Conn, args ...string) (*survey, error) {
	begun := time.Now()
	out, err := runScript(ctx, c, factsScript, args...)
	if err != nil {
		return nil, fmt.Errorf("asking for facts: %w", err)
	}
	return readSurvey([]byte(out), begun, time.Now())
}

// readSurvey reads the script's answer, given between two instants of this
// machine's clock.
func readSurvey(text []byte, begun, ended time.Time) (*survey, error) {
	s := &survey{tools: map[string]bool{}, listens: map[int]string{}, disks: map[string]diskState{}}
	s.facts.Extra = map[string]string{}
	var first, last float64
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		word, value, _ := strings.Cut(lines.Text(), "\t")
		value = strings.TrimSpace(value)
		switch word {
		case "now":
			first = number(value)
		case "end":
			last = number(value)
		default:
			s.take(word, value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading facts: %w", err)
	}
	if last == 0 {
		return nil, fmt.Errorf("asking for facts: the answer is cut short: %.200q", text)
	}
	// Of the two ends, the one with less between it and this machine's own clock.
	here := func(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
	s.facts.Offset = last - here(ended)
	if o := first - here(begun); abs(o) < abs(s.facts.Offset) {
		s.facts.Offset = o
	}
	return s, nil
}

// take reads one fact.
func (s *survey) take(word, value string) {
	switch word {
	case "os":
		s.facts.OS = value
	case "kernel":
		s.facts.Kernel = value
	case "cpu":
		s.facts.CPUModel = value
	case "processors":
		s.facts.Processors = int(number(value))
	case "memory_kib":
		s.facts.Memory = int64(number(value)) << 10
	case "free":
		if f := strings.Fields(value); len(f) > 0 {
			s.facts.FreeSpace = int64(number(f[len(f)-1]))
		}
	case "java":
		s.takeJava(value)
	case "sysstat":
		s.facts.Sysstat = afterWord(value, "version")
	case "tool":
		s.tools[value] = true
	case "systemd", "container":
		s.facts.Extra[word] = value
	case "listen":
		s.takeListen(value)
	case "socket":
		s.takeSocket(value)
	case "kafka":
		pid, argv, _ := strings.Cut(value, " ")
		s.kafkas = append(s.kafkas, process{int(number(pid)), argv})
	case "disk":
		s.takeDisk(value)
	}
}

func (s *survey) takeJava(value string) {
	f := strings.SplitN(value, "|", 3)
	if len(f) != 3 {
		return
	}
	full, major := javaVersion(f[2])
	if major == 0 {
		return
	}
	s.javas = append(s.javas, javaProgram{f[0], full, major, time.Duration(number(f[1]))})
}

// takeListen reads the local address of a listening socket as the kernel
// writes it: hexadecimal address, colon, hexadecimal port.
func (s *survey) takeListen(value string) {
	_, port, ok := strings.Cut(value, ":")
	raw, err := hex.DecodeString(port)
	if !ok || err != nil || len(raw) != 2 {
		return
	}
	n := int(raw[0])<<8 | int(raw[1])
	if s.listens[n] == "" {
		s.listens[n] = "another process"
	}
}

// takeSocket reads a line of ss -Hltnp, which knows the process.
func (s *survey) takeSocket(line string) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return
	}
	at := strings.LastIndexByte(f[3], ':')
	port, err := strconv.Atoi(f[3][at+1:])
	_, who, ok := strings.Cut(f[5], `(("`)
	if err != nil || !ok {
		return
	}
	name, rest, _ := strings.Cut(who, `"`)
	pid, _, _ := strings.Cut(strings.TrimPrefix(rest, ",pid="), ",")
	s.listens[port] = fmt.Sprintf("%s (pid %s)", name, pid)
}

func (s *survey) takeDisk(value string) {
	f := strings.SplitN(value, "|", 3)
	if len(f) != 3 {
		return
	}
	d := diskState{present: f[1] == "present", holds: map[string]string{}}
	for _, pair := range strings.Fields(f[2]) {
		if k, v, ok := strings.Cut(pair, "="); ok && k != "DEVNAME" {
			d.holds[k] = v
		}
	}
	s.disks[f[0]] = d
}

// bestJava is the first program found that is new enough, else the newest.
func (s *survey) bestJava(need int) (javaProgram, bool) {
	for _, j := range s.javas {
		if j.major >= need {
			return j, true
		}
	}
	if len(s.javas) == 0 {
		return javaProgram{}, false
	}
	return slices.MaxFunc(s.javas, func(a, b javaProgram) int { return a.major - b.major }), false
}

// foreign are the Kafka processes that are not this run's.
func (s *survey) foreign(l layout) []process {
	var out []process
	for _, p := range s.kafkas {
		if !strings.Contains(p.argv, l.nodes()+"/") {
			out = append(out, p)
		}
	}
	return out
}

// number reads a decimal number; what is none is 0.
func number(s string) float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0
	}
	return f
}

// afterWord is the field that follows a word.
func afterWord(text, word string) string {
	f := strings.Fields(text)
	if i := slices.Index(f, word); i >= 0 && i+1 < len(f) {
		return f[i+1]
	}
	return ""
}

func abs(f float64) float64 { return max(f, -f) }
