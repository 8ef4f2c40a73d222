package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"krig/internal/experiment"
	"krig/internal/result"
)

// longLoad lasts longer than any test waits for its end.
func longLoad(c *experiment.Cell) {
	c.Bench.Rate = experiment.SendRate{Value: 500}
	c.Bench.Duration = experiment.Duration(2 * time.Minute)
}

// during runs act once the load has begun.
func (p *place) during(act func()) {
	go func() {
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			p.mu.Lock()
			for _, e := range p.events {
				if e.Throughput > 0 {
					p.mu.Unlock()
					act()
					return
				}
			}
			p.mu.Unlock()
		}
	}()
}

func TestBrokerDiesInMidLoad(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 2, 1)
	p.during(func() { p.doors.kill(1) })
	began := time.Now()
	r := p.measure(cell(longLoad))
	if took := time.Since(began); took > 100*time.Second {
		t.Errorf("it took %v to see it", took)
	}
	if r.Status != result.Invalid || !strings.Contains(r.Reason, "b2: broker 1 died") {
		t.Errorf("%s: %q", r.Status, r.Reason)
	}
}

func TestAgentDiesInMidLoad(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 1, 2)
	p.during(func() { p.killAgent("w2") })
	c := cell(longLoad)
	r := p.measure(c)
	if r.Status != result.Invalid || !strings.HasPrefix(r.Reason, "w2: ") {
		t.Errorf("%s: %q", r.Status, r.Reason)
	}
	for _, w := range []string{"w1", "w2"} {
		if _, err := os.Stat(p.run.Path("cells", "c1", "1", "load", w+".hlog")); err != nil {
			t.Errorf("what %s had recorded is lost: %v", w, err)
		}
	}
	if again := p.measure(c); again.Status != result.Failed || !strings.HasPrefix(again.Reason, "w2: ") {
		t.Errorf("without an agent: %s: %q", again.Status, again.Reason)
	}
	if _, err := os.Stat(p.run.Path("cells", "c1", "1.1", "result.json")); err != nil {
		t.Errorf("the first attempt's result is lost: %v", err)
	}
}

// killAgent ends a host's agent as a crash would.
func (p *place) killAgent(host string) {
	path := filepath.Join(p.agents, host, "krig-agent")
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		p.t.Error(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil || !strings.HasPrefix(string(data), path+"\x00") {
			continue
		}
		pid := 0
		for _, c := range strings.Split(name, "/")[2] {
			pid = pid*10 + int(c-'0')
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			p.t.Error(err)
		}
	}
}

func TestCancelledLoad(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	p.during(cancel)
	began := time.Now()
	_, err := p.session.Run(ctx, Ask{Cell: cell(longLoad), Cluster: p.cluster, Repeat: 1, Attempt: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v to end", took)
	}
	if p.kafka.TopicInfo("krig-c1-1") != nil {
		t.Error("the topic is still there")
	}
}

func TestLimitOfARepeat(t *testing.T) {
	t.Parallel()
	p := newPlace(t, 1, 1)
	r := p.measure(cell(func(c *experiment.Cell) {
		longLoad(c)
		c.Bench.Limit = experiment.Duration(3 * time.Second)
	}))
	if r.Status != result.Invalid || !strings.Contains(r.Reason, "limit of 3s") {
		t.Errorf("%s: %q", r.Status, r.Reason)
	}
	for _, e := range p.events { // that it loads is said before it is seen
		if e.Throughput > 0 {
			t.Error("nobody said that it loads")
		}
		if e.Stage == "bench" && e.Message == "loading for 2m0s at 500 records/s" {
			return
		}
	}
	t.Errorf("nobody said that it loads: %v", p.events)
}
