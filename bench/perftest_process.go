package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"krig/internal/agent"
	"krig/internal/perftool"
)

const (
	stderrLines = 5       // of a tool that are kept for sentences
	linesMost   = 1 << 20 // of a tool that are kept for its file
)

// toolProcess is one run of a tool on a worker host.
type toolProcess struct {
	kind  string // producer or consumer
	no    int    // from 1
	host  string
	topic string
	group string // of a consumer
	argv  []string
	asked int64 // records
	size  float64

	lines    []agent.Line
	stderr   []string // its first words on standard error
	producer perftool.ProducerReader
	consumer perftool.ConsumerReader
	end      agent.ExecEnd
}

func (p *toolProcess) name() string { return fmt.Sprintf("%s %d on %s", p.kind, p.no, p.host) }

// producing are the producers' processes; the i-th sends n[i] records, of
// which its share of warmup does not count. One throughput counts for all.
func (r *perftestRun) producing(n []int64, warmup int64, throughput ...string) []*toolProcess {
	b := r.l.Cell.Bench
	_, file := splitConfig(b.Producer)
	out := make([]*toolProcess, len(n))
	for i := range out {
		p := &toolProcess{
			kind: "producer", no: i + 1, host: r.workers[i%len(r.workers)].Name,
			topic: r.l.topics[i%len(r.l.topics)], asked: n[i], size: float64(b.RecordSize),
		}
		spec := producerSpec{
			bootstrap: r.l.Cluster.Bootstrap(), topic: p.topic, records: n[i], size: int64(b.RecordSize),
			warmup: share(warmup, i, len(n)), throughput: throughput[i%len(throughput)], config: b.Producer,
		}
		if len(file) > 0 {
			spec.configFile = filepath.Join(r.dir(p.host), producerFile)
		}
		if id := b.Producer["transactional.id"]; id != "" {
			spec.transaction = fmt.Sprintf("%s-%d", id, p.no)
		}
		p.argv = r.jvm(p.host).command(r.v.producer(spec))
		out[i] = p
	}
	return out
}

// consuming are the consumers' processes; the i-th reads n[i] records in its
// topic's group, or with a suffix in a group of its own.
func (r *perftestRun) consuming(n []int64, suffix string) []*toolProcess {
	b := r.l.Cell.Bench
	out := make([]*toolProcess, len(n))
	for i := range out {
		p := &toolProcess{
			kind: "consumer", no: i + 1, host: r.workers[i%len(r.workers)].Name,
			topic: r.l.topics[i%len(r.l.topics)], asked: n[i], size: float64(b.RecordSize),
		}
		p.group = p.topic
		if suffix != "" {
			p.group += fmt.Sprintf("%s-%d", suffix, p.no) // each in its own
		}
		spec := consumerSpec{
			bootstrap: r.l.Cluster.Bootstrap(), topic: p.topic, group: p.group, records: n[i],
			timeout: r.idle(p.host), config: b.Consumer,
		}
		if len(b.Consumer) > 0 {
			spec.configFile = filepath.Join(r.dir(p.host), consumerFile)
		}
		p.argv = r.jvm(p.host).command(r.v.consumer(spec))
		out[i] = p
	}
	return out
}

// idle is how long a consumer waits for a record.
func (r *perftestRun) idle(host string) time.Duration {
	return time.Duration(float64(toolIdle) * r.s.slowness(host)).Round(time.Second)
}

// runAll runs processes side by side and waits for all. The first that fails
// ends the others; its error is returned. When ctx ends all are ended.
func (r *perftestRun) runAll(ctx context.Context, procs []*toolProcess) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, p := range procs {
		wg.Go(func() {
			if err := r.run(ctx, p); err != nil {
				cancel(err) // the first counts
			}
		})
	}
	wg.Wait()
	r.show.reset()
	return context.Cause(ctx)
}

// run runs one process until its end.
func (r *perftestRun) run(ctx context.Context, p *toolProcess) error {
	a := r.s.agents[p.host]
	if a == nil {
		return fmt.Errorf("%s: there is no agent", p.name())
	}
	env := []string{"LC_ALL=C", "TZ=UTC"}
	end, err := agent.Exec(ctx, a, agent.ExecSpec{Argv: p.argv, Env: env}, func(l agent.Line) { r.line(p, l) })
	p.end = end
	if err != nil {
		return fmt.Errorf("%s: %w", p.name(), err)
	}
	if end.Code != 0 {
		return fmt.Errorf("%s: exit status %d%s", p.name(), end.Code, complaint([]*toolProcess{p}))
	}
	return nil
}

// line takes a line of a process; one process' lines come from one goroutine.
func (r *perftestRun) line(p *toolProcess, l agent.Line) {
	if len(p.lines) < linesMost {
		p.lines = append(p.lines, l)
	}
	switch {
	case l.Stderr:
		if len(p.stderr) < stderrLines && strings.TrimSpace(l.Text) != "" && !strings.HasPrefix(l.Text, "SLF4J") {
			p.stderr = append(p.stderr, l.Text)
		}
	case p.kind == "producer":
		if i := p.producer.Line(l.At, l.Text); i != nil && i.Rate != nil {
			r.show.set(p, *i.Rate*p.size)
		}
	default:
		p.consumer.Line(l.Text)
	}
}

// keep writes what the tools printed below the load's directory: standard
// output, each line behind the time at which it was printed, and standard error apart.
func (r *perftestRun) keep(procs []*toolProcess) error {
	var errs []error
	for _, p := range procs {
		var out, stderr strings.Builder
		for _, l := range p.lines {
			to := &out
			if l.Stderr {
				to = &stderr
			}
			fmt.Fprintf(to, "[%s] %s\n", strings.Replace(l.At.UTC().Format("2006-01-02 15:04:05.000"), ".", ",", 1), l.Text)
		}
		name := fmt.Sprintf("%s-%d", p.kind, p.no)
		errs = append(errs, r.s.run.WriteFile([]byte(out.String()), r.l.dir, p.host, name+".txt"))
		if stderr.Len() > 0 {
			errs = append(errs, r.s.run.WriteFile([]byte(stderr.String()), r.l.dir, p.host, name+".stderr"))
		}
	}
	if err := errors.Join(errs...); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("keeping the tools' output: %w", err)
	}
	return nil
}

// speed is the present throughput of all producers together.
type speed struct {
	tell func(bytesPerSecond float64)

	mu  sync.Mutex
	now map[*toolProcess]float64
}

func newSpeed(tell func(float64)) *speed {
	return &speed{tell: tell, now: map[*toolProcess]float64{}}
}

func (s *speed) set(p *toolProcess, bytesPerSecond float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[p] = bytesPerSecond
	sum := 0.0
	for _, v := range s.now {
		sum += v
	}
	if s.tell != nil {
		s.tell(sum)
	}
}

func (s *speed) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.now)
}
