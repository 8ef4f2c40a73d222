package reports

import (
	"fmt"
	"strconv"

	"krig/internal/experiment"
	"krig/internal/result"
)

// variants are runs of every kind that a report must answer.
func variants() map[string]func() *synthetic {
	return map[string]func() *synthetic{
		"disks":    func() *synthetic { return disks(3) },
		"single":   func() *synthetic { return disks(1) },
		"ranks":    func() *synthetic { return disks(6) },
		"troubled": troubled,
		"machine":  machineLimited,
		"same":     sameDisks,
		"one":      oneCell,
		"sweep":    sweep,
		"rate":     fixedRate,
		"joined":   joinedAxes,
		"blocks":   twoBlocks,
		"wide":     manyContextCells,
		"nothing":  nothingValid,
	}
}

// troubled has a lab machine at its limit, an invalid, a failed and a missing
// repeat, lost collectors, holes and warnings.
func troubled() *synthetic {
	s := disks(3)
	s.load = func(c *experiment.Cell, n int) loadOf {
		l := diskLoad(c, n)
		if c.ID == "brokers-3-ssd" {
			l.throughput, l.machine = 66*mebi, 0.96
		}
		return l
	}
	s.change = func(c *experiment.Cell, rep *result.Repeat, f *result.SeriesFile) bool {
		switch {
		case c.ID == "brokers-3-ssd":
			rep.Marks = append(rep.Marks, result.LimitedByLabMachine)
		case c.ID == "brokers-2-ssd" && rep.Repeat == 2:
			rep.Status, rep.Reason = result.Invalid, "broker b2 died: OutOfMemoryError: Java heap space"
			dig(f, "b2", 12, 30)
			lose(rep, "b2", "sar ended at 09:03:12 and could not be started again")
		case c.ID == "brokers-1-hdd" && rep.Repeat == 1:
			rep.Status, rep.Reason = result.Failed, "topic krig-1 was not created within 30s"
			rep.Measures, rep.Hosts, f.Series = result.Measures{}, map[string]result.HostResult{}, nil
		case c.ID == "brokers-3-hdd" && rep.Repeat == 3:
			return false
		case c.ID == "brokers-1-ssd":
			rep.Warnings = append(rep.Warnings, "2 of 3 workers started 12 ms late")
			dig(f, "b1", 10, 14)
		}
		return true
	}
	return s
}

// machineLimited has nothing but repeats that the lab machine held back.
func machineLimited() *synthetic {
	s := disks(1)
	s.load = func(c *experiment.Cell, n int) loadOf {
		l := diskLoad(c, n)
		l.throughput, l.machine = 40*mebi, 0.99
		return l
	}
	s.change = func(_ *experiment.Cell, rep *result.Repeat, _ *result.SeriesFile) bool {
		rep.Marks = append(rep.Marks, result.LimitedByLabMachine)
		rep.Hosts[machine].Measures.Set("cpu.pressure", 0.87, result.Ratio)
		return true
	}
	return s
}

// dig makes a hole in all of a host's series, from and to by sample.
func dig(f *result.SeriesFile, host string, from, to int) {
	for i := range f.Series {
		if f.Series[i].Host != host {
			continue
		}
		for k := from; k < min(to, len(f.Series[i].Values)); k++ {
			f.Series[i].Values[k] = nil
		}
	}
}

func lose(rep *result.Repeat, host, why string) {
	h := rep.Hosts[host]
	h.Lost = why
	rep.Hosts[host] = h
}

// sameDisks has an axis that does nothing.
func sameDisks() *synthetic {
	s := &synthetic{repeats: 4, warmup: 2, steady: 10, plan: &experiment.Plan{Name: "same", Order: "rounds"}}
	for _, threads := range []string{"4", "8", "16"} {
		c := diskCell(2, "ssd")
		c.ID = "threads-" + threads
		c.Axes = []experiment.Axis{{Path: "kafka.broker.num.io.threads", Value: threads}}
		s.add(c)
	}
	s.load = diskLoad
	return s
}

// oneCell has no matrix.
func oneCell() *synthetic {
	s := &synthetic{repeats: 2, warmup: 2, steady: 10, plan: &experiment.Plan{Name: "one", Order: "blocked"}}
	c := diskCell(3, "ssd")
	c.ID, c.Axes = "one", nil
	s.add(c)
	s.load = func(*experiment.Cell, int) loadOf {
		return loadOf{throughput: 40 * mebi, cpu: 0.5, machine: 0.6, latency: 0.003}
	}
	return s
}

// sweep varies the batch size, the default among it, on two rigs, with Kafka's
// own tools; the rig is no axis of the matrix.
func sweep() *synthetic {
	s := &synthetic{repeats: 3, warmup: 0, steady: 10, plan: &experiment.Plan{Name: "batch-size", Order: "blocked"}}
	for _, rig := range []string{"own-machine", "cloud"} {
		for _, batch := range []string{"100", "10000", "100000", "default"} {
			c := diskCell(1, "none")
			c.ID, c.RigName, c.Bench.Driver = "batch-"+batch+"-"+rig, rig, "perftest"
			c.Axes = []experiment.Axis{{Path: "bench.producer.batch.size", Value: batch}}
			s.add(c)
		}
	}
	s.load = func(c *experiment.Cell, _ int) loadOf {
		rate := map[string]float64{"100": 4, "10000": 30, "100000": 113, "default": 36}[c.Axes[len(c.Axes)-1].Value] * mebi
		if c.RigName == "cloud" {
			rate *= 0.58
		}
		return loadOf{throughput: rate, cpu: 0.9, machine: 0.7, latency: 0.5}
	}
	return s
}

// fixedRate asks for a rate, so that latency is the question.
func fixedRate() *synthetic {
	s := &synthetic{repeats: 3, warmup: 2, steady: 10, plan: &experiment.Plan{Name: "rate", Order: "blocked"}}
	for _, acks := range []string{"1", "all"} {
		c := diskCell(3, "ssd")
		c.ID = "acks-" + acks
		c.Axes = []experiment.Axis{{Path: "bench.producer.acks", Value: acks}}
		c.Bench.Rate = experiment.SendRate{Value: 5000}
		s.add(c)
	}
	s.load = func(c *experiment.Cell, _ int) loadOf {
		l := loadOf{throughput: 5000 * 1024, cpu: 0.1, machine: 0.2, latency: 0.0008}
		if c.ID == "acks-all" {
			l.latency = 0.0021
		}
		return l
	}
	return s
}

// joinedAxes varies workers and brokers together.
func joinedAxes() *synthetic {
	s := &synthetic{repeats: 2, warmup: 2, steady: 10, plan: &experiment.Plan{Name: "together", Order: "blocked"}}
	for _, n := range [][2]int{{1, 1}, {2, 2}, {4, 4}, {4, 5}} {
		c := diskCell(n[1], "ssd")
		c.ID, c.Rig.Workers.Count = fmt.Sprintf("w%d-b%d", n[0], n[1]), n[0]
		c.Axes = []experiment.Axis{{Path: "workers.count", Value: strconv.Itoa(n[0])}, {Path: "brokers.count", Value: strconv.Itoa(n[1])}}
		s.add(c)
	}
	s.load = func(c *experiment.Cell, _ int) loadOf {
		sent := min(float64(c.Rig.Brokers.Count)*29*mebi, float64(c.Rig.Workers.Count)*118e6)
		return loadOf{throughput: sent, cpu: 0.3, machine: 0.5, latency: 0.02}
	}
	return s
}

// twoBlocks is a union of two blocks of axes.
func twoBlocks() *synthetic {
	s := disks(2)
	s.plan.Name = "blocks"
	for _, c := range joinedAxes().plan.Cells {
		s.add(c)
	}
	return s
}

// manyContextCells has three axes and thirty cells.
func manyContextCells() *synthetic {
	s := &synthetic{repeats: 1, warmup: 2, steady: 10, plan: &experiment.Plan{Name: "wide", Order: "blocked"}}
	for _, disk := range []string{"ssd", "hdd"} {
		for _, acks := range []string{"0", "1", "all"} {
			for n := 1; n <= 5; n++ {
				c := diskCell(n, disk)
				c.ID = fmt.Sprintf("b%d-%s-acks-%s", n, disk, acks)
				c.Axes = append(c.Axes, experiment.Axis{Path: "bench.producer.acks", Value: acks})
				s.add(c)
			}
		}
	}
	s.load = func(c *experiment.Cell, n int) loadOf {
		l := diskLoad(c, n)
		l.throughput *= map[string]float64{"0": 1, "1": 0.9, "all": 0.6}[c.Axes[2].Value]
		l.machine = 0.5
		return l
	}
	return s
}

// nothingValid has no repeat that counts.
func nothingValid() *synthetic {
	s := disks(1)
	s.change = func(c *experiment.Cell, rep *result.Repeat, f *result.SeriesFile) bool {
		rep.Status, rep.Reason, rep.Measures, rep.Hosts, f.Series = result.Failed, "connecting to b1: connection refused", nil, nil, nil
		return c.ID != "brokers-3-hdd"
	}
	return s
}
