package hoststat

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"krig/internal/result"
)

// IostatOptions say how a file was made.
type IostatOptions struct {
	SinceBoot bool          // the first report tells the time since boot (no -y) and is left out
	Start     time.Time     // where samples have no time of their own (no -t): when it was started
	Interval  time.Duration // asked for
}

// ReadIostat reads what `iostat -o JSON -x` printed: of each device disk.read,
// disk.write and disk.busy.
func ReadIostat(r io.Reader, opt IostatOptions) (*Reading, error) {
	t := newTable(1)
	out := &Reading{}
	reports, last := 0, 0.0
	cut, err := document(r, handlers{sample: func(n node) {
		reports++
		at, length, ok := iostatTime(t, n, opt, reports, last)
		if !ok {
			return
		}
		last = at
		if opt.SinceBoot && reports == 1 {
			return
		}
		out.Samples++
		iostatDisks(t, n, at, length)
	}})
	return finish(t, out, cut, err)
}

// iostatTime is a sample's end and length. Stamps are whole seconds, so that a
// length by two of them may be off by one: the asked interval is taken while
// they agree with it.
func iostatTime(t *table, n node, opt IostatOptions, reports int, last float64) (at, length float64, ok bool) {
	length = opt.Interval.Seconds()
	stamp := n.str("timestamp")
	if stamp == "" {
		return seconds(opt.Start) + float64(reports)*length, length, true
	}
	for _, form := range []string{ // ISO first: what krig asks for
		"2006-01-02T15:04:05-0700", "2006-01-02 15:04:05",
		"01/02/06 15:04:05", "01/02/2006 15:04:05", "01/02/06 03:04:05 PM", "01/02/2006 03:04:05 PM",
	} {
		when, err := time.Parse(form, stamp)
		if err != nil {
			continue
		}
		at = seconds(when)
		if since := at - last; last > 0 && (length == 0 || math.Abs(since-length) > 1) {
			length = since
		}
		return at, length, true
	}
	t.warn(fmt.Sprintf("a time that cannot be read: %q", stamp))
	return 0, 0, false
}

func iostatDisks(t *table, n node, at, length float64) {
	tables := n.all("disk")
	if len(tables) > 1 {
		t.warn(`the key "disk" was repeated: all its devices are kept`)
	}
	for _, disks := range tables {
		for _, d := range disks.kids {
			device := d.str("disk_device")
			if device == "" {
				continue
			}
			t.add("disk.read", device, result.BytesPerSecond, at, length, iostatBytes(t, d, "r"))
			t.add("disk.write", device, result.BytesPerSecond, at, length, iostatBytes(t, d, "w"))
			t.add("disk.busy", device, result.Ratio, at, length, iostatBusy(d))
		}
	}
}

func iostatBusy(d node) *float64 {
	util := d.num("util")
	if util == nil {
		return nil
	}
	return ptr(math.Min(*util, 100) / 100)
}

// iostatBytes are the bytes/s in one direction. 12.1 printed twice the true
// kB/s in JSON; the number of requests times their size tells.
func iostatBytes(t *table, d node, way string) *float64 {
	if mb := d.num(way + "MB/s"); mb != nil {
		return ptr(*mb * (1 << 20))
	}
	kb := d.num(way + "kB/s")
	if kb == nil {
		return nil
	}
	requests, size := d.num(way+"/s"), d.num(way+"areq-sz")
	if requests != nil && size != nil {
		if real := *requests * *size; real > 10 && math.Abs(*kb-2*real) < 0.02*real {
			t.warn("this release of iostat prints twice the true kB/s: halved")
			*kb /= 2
		}
	}
	return ptr(*kb * 1024)
}

// iostat is the collector of each disk.
func iostat() Collector {
	return Collector{
		Name: "iostat", Package: "sysstat", Raw: ".json", Ext: ".json", Stdout: true, Disks: true,
		Argv: func(a Ask, devices []string, _ string) []string {
			return slices.Concat([]string{"iostat", "-o", "JSON", "-x", "-t"}, devices, []string{strconv.Itoa(a.Interval)})
		},
		Read: func(r io.Reader, h Watched) (*Reading, error) {
			return ReadIostat(r, IostatOptions{SinceBoot: true, Interval: h.Interval})
		},
	}
}
