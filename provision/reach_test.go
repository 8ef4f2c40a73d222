package provision

import (
	"errors"
	"net"
	"testing"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

// A listener and a closed port both prove that the way is open.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := remote.Local()
	defer c.Close()
	if err := dial(t.Context(), c, l.Addr().String()); err != nil {
		t.Errorf("dialling a listener: %v", err)
	}
	l.Close()
	if err := dial(t.Context(), c, l.Addr().String()); !errors.Is(err, errRefused) {
		t.Errorf("dialling a closed port: %v", err)
	}
}

func TestServes(t *testing.T) {
	with := func(change func(*rundir.PreparedHost)) rundir.PreparedHost {
		p := rundir.PreparedHost{Distribution: "4.4.0", Facts: rundir.Facts{JavaMajor: 17, Sysstat: "12.6.1"}}
		change(&p)
		return p
	}
	for _, tt := range []struct {
		name    string
		p       rundir.PreparedHost
		collect experiment.Collect
		want    bool
	}{
		{"all there", with(func(*rundir.PreparedHost) {}), experiment.Collect{Sar: true}, true},
		{"another Kafka", with(func(p *rundir.PreparedHost) { p.Distribution = "3.9.1" }), experiment.Collect{}, false},
		{"Java too old", with(func(p *rundir.PreparedHost) { p.Facts.JavaMajor = 11 }), experiment.Collect{}, false},
		{"no sysstat", with(func(p *rundir.PreparedHost) { p.Facts.Sysstat = "" }), experiment.Collect{Iostat: true}, false},
		{"no sysstat and no need", with(func(p *rundir.PreparedHost) { p.Facts.Sysstat = "" }), experiment.Collect{}, true},
	} {
		c := testCell("kraft")
		c.Collect = tt.collect
		if got := serves(tt.p, c, &distribution{id: "4.4.0", version: "4.4.0"}); got != tt.want {
			t.Errorf("%s: serves = %v, want %v", tt.name, got, tt.want)
		}
	}
}
