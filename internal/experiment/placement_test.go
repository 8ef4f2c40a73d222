package experiment_test

import (
	"fmt"
	"strings"
	"testing"

	"krig/internal/experiment"
)

func TestPlacement(t *testing.T) {
	pool := func(n int, on string) experiment.Pool { return experiment.Pool{Count: n, On: on} }
	for _, c := range []struct {
		name                          string
		brokers, controllers, workers experiment.Pool
		mode                          string
		want                          string
	}{
		{"a controller beside the first broker", pool(2, ""), pool(0, ""), pool(1, ""), "kraft",
			"b1 brokers [broker controller], b2 brokers [broker], w1 workers [worker]"},
		{"controllers of their own", pool(1, ""), pool(2, ""), pool(2, ""), "kraft",
			"b1 brokers [broker], c1 controllers [controller], c2 controllers [controller], w1 workers [worker], w2 workers [worker]"},
		{"all on brokers", pool(3, ""), pool(1, "brokers"), pool(2, "brokers"), "kraft",
			"b1 brokers [broker controller worker], b2 brokers [broker worker], b3 brokers [broker]"},
		{"combined", pool(2, ""), pool(0, ""), pool(0, "brokers"), "combined",
			"b1 brokers [broker controller worker], b2 brokers [broker controller worker]"},
		{"on a pool that is on another", pool(0, "workers"), pool(0, "brokers"), pool(2, ""), "kraft",
			"w1 workers [broker controller worker], w2 workers [broker controller worker]"},
	} {
		cell := &experiment.Cell{Rig: experiment.Rig{Brokers: c.brokers, Controllers: c.controllers, Workers: c.workers}, Kafka: experiment.Kafka{Mode: c.mode}}
		var got []string
		for _, p := range cell.Placement() {
			got = append(got, fmt.Sprint(p.Name, " ", p.Pool, " ", p.Roles))
			if p.Keys.On != "" || p.Keys.Count == 0 {
				t.Errorf("%s: %s is made by %+v", c.name, p.Name, p.Keys)
			}
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, s, c.want)
		}
	}
}
