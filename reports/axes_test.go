package reports

import (
	"slices"
	"strings"
	"testing"

	"krig/internal/experiment"
)

func TestAxes(t *testing.T) {
	cell := func(pairs ...string) *cellView {
		c := &experiment.Cell{}
		for i := 0; i < len(pairs); i += 2 {
			c.Axes = append(c.Axes, experiment.Axis{Path: pairs[i], Value: pairs[i+1]})
		}
		return &cellView{plan: c}
	}
	tests := []struct {
		name  string
		cells []*cellView
		want  []string // label, kind, values, and the words of the first value
	}{
		{"none", []*cellView{cell()}, nil},
		{"a constant is no axis", []*cellView{cell("bench.producer.acks", "1"), cell("bench.producer.acks", "1")}, nil},
		{"counts", []*cellView{cell("rigs.lab.brokers.count", "10"), cell("rigs.lab.brokers.count", "9"), cell("rigs.lab.brokers.count", "1")},
			[]string{"brokers scaling 1,9,10: 1 broker"}},
		{"words stay in order", []*cellView{cell("brokers.disk.profile", "ssd"), cell("brokers.disk.profile", "hdd")},
			[]string{"disk categorical ssd,hdd: ssd"}},
		{"sizes by value, unset last", []*cellView{cell("bench.producer.batch.size", "default"), cell("bench.producer.batch.size", "1_000"), cell("bench.producer.batch.size", "200")},
			[]string{"batch.size ordered 200,1_000,default: batch.size 200"}},
		{"units", []*cellView{cell("bench.record_size", "16KiB"), cell("bench.record_size", "800B"), cell("bench.record_size", "1kB")},
			[]string{"record size ordered 800B,1kB,16KiB: record size 800B"}},
		{"mixed words and numbers", []*cellView{cell("bench.producer.acks", "0"), cell("bench.producer.acks", "all")},
			[]string{"acks categorical 0,all: acks 0"}},
		{"changing together", []*cellView{cell("workers.count", "1", "brokers.count", "1"), cell("workers.count", "4", "brokers.count", "5"), cell("workers.count", "4", "brokers.count", "4")},
			[]string{"workers-brokers scaling 1-1,4-4,4-5: 1 worker and 1 broker"}},
		{"independent", []*cellView{cell("brokers.count", "1", "rig", "a"), cell("brokers.count", "2", "rig", "a"), cell("brokers.count", "1", "rig", "b"), cell("brokers.count", "2", "rig", "b")},
			[]string{"brokers scaling 1,2: 1 broker", "rig categorical a,b: a"}},
		{"same short name", []*cellView{cell("bench.producer.x", "1", "bench.consumer.x", "1"), cell("bench.producer.x", "2", "bench.consumer.x", "1"), cell("bench.producer.x", "1", "bench.consumer.x", "2"), cell("bench.producer.x", "2", "bench.consumer.x", "2")},
			[]string{"bench.producer.x ordered 1,2: bench.producer.x 1", "bench.consumer.x ordered 1,2: bench.consumer.x 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, x := range axesOf(tt.cells) {
				kind := [...]string{"categorical", "ordered", "scaling"}[x.kind]
				got = append(got, x.label+" "+kind+" "+show(strings.Join(x.values, ","))+": "+x.words(x.values[0]))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestNumber(t *testing.T) {
	tests := []struct {
		in   string
		want float64
		ok   bool
	}{
		{"12", 12, true}, {"2_000_000", 2e6, true}, {"-1", -1, true}, {"0.5", 0.5, true}, {"30MiB/s", 30 << 20, true},
		{"1gbit", 1e9, true}, {"4 per worker", 4, true}, {"500ms", 0.5, true}, {"ssd", 0, false}, {"", 0, false}, {"4.4.0", 0, false}, {"3 apples", 0, false},
	}
	for _, tt := range tests {
		got, ok := number(tt.in)
		if ok != tt.ok || (ok && got != tt.want) {
			t.Errorf("number(%q) = %v, %v; want %v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"12", "2_000_000", "30MiB/s", "4 per worker", "1e309", "-", "µs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := number(s); ok && !finite(n) {
			t.Errorf("number(%q) is %v", s, n)
		}
	})
}
