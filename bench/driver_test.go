package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"krig/internal/experiment"
	"krig/internal/result"
	"krig/internal/rundir"
)

func TestLoading(t *testing.T) {
	for want, change := range map[string]func(*experiment.Cell){
		"loading for 2s at the ceiling": func(*experiment.Cell) {},
		"loading for 12s at 500 records/s": func(c *experiment.Cell) {
			c.Bench.Rate = experiment.SendRate{Value: 500}
			c.Bench.Warmup = experiment.Duration(10 * time.Second)
		},
		"loading 3000 records at the ceiling": func(c *experiment.Cell) { c.Bench.Records = count(3000) },
	} {
		c := &conductor{l: loadAsk{Ask: Ask{Cell: cell(change)}}}
		if got := c.loading(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A driver that makes its own topics has none made for it; those that it names
// are deleted after the load.
func TestDriverWithItsOwnTopics(t *testing.T) {
	p := newPlace(t, 1, 1)
	made, err := p.session.makeTopics(t.Context(), p.cluster, cell(func(*experiment.Cell) {}), driver{ownTopics: true})
	if err != nil {
		t.Fatal(err)
	}
	defer made.close()
	if len(made.names) != 0 {
		t.Errorf("made %q", made.names)
	}
	if err := made.remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := made.admin.CreateTopic(t.Context(), 1, 1, nil, "omb"); err != nil {
		t.Fatal(err)
	}
	made.names = append(made.names, "omb")
	if err := made.remove(t.Context()); err != nil || p.kafka.TopicInfo("omb") != nil {
		t.Errorf("the driver's own topic is still there: %v", err)
	}
}

// A host that is broker and worker has one agent, one set of collectors, and the load.
func TestWorkersOnBrokers(t *testing.T) {
	p := newPlace(t, 2, 0)
	r := p.measure(cell(func(c *experiment.Cell) {
		c.Bench.Records, c.Bench.Duration = count(1000), 0
		c.Bench.Producer["receive.buffer.bytes"] = "4096"
	}))
	sound(t, r)
	if len(p.session.agents) != 2 || len(r.Hosts) != 2 || len(p.session.hosts(rundir.Worker)) != 2 {
		t.Errorf("%d agents, %d hosts of results, want 2 of each", len(p.session.agents), len(r.Hosts))
	}
	want := []result.NotApplied{{Key: "producer.receive.buffer.bytes", Asked: "4096", Reason: "has no effect in the native driver"}}
	if !slices.Equal(r.Client.NotApplied, want) {
		t.Errorf("not applied: %v, want %v", r.Client.NotApplied, want)
	}
}

func TestUnknownDriver(t *testing.T) {
	got := Check(cell(func(c *experiment.Cell) { c.Bench.Driver = "wrk" }))
	if len(got) != 1 || got[0].Path != "bench.driver" || !strings.Contains(got[0].Reason, "native, perftest") {
		t.Errorf("%+v", got)
	}
}

func TestNativePrime(t *testing.T) {
	p := newPlace(t, 1, 1)
	if err := p.session.Prime(t.Context(), p.cluster, cell(func(*experiment.Cell) {})); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, e := range p.events {
		if e.Message != "" {
			said = append(said, e.Stage+": "+e.Message)
		}
	}
	want := []string{"bench: priming: a short load that is not counted", "settle: after priming: until its topics are deleted"}
	if !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
}
