package lab

import (
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"krig/internal/rundir"
)

func prefixes(t *testing.T, all ...string) []netip.Prefix {
	t.Helper()
	var out []netip.Prefix
	for _, s := range all {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func TestFreeSubnet(t *testing.T) {
	for _, c := range []struct {
		name string
		used []string
		want string // the subnet lies in it
	}{
		{"nothing in use", nil, "10.0.0.0/8"},
		{"half of ten", []string{"10.0.0.0/9", "10.88.0.0/16"}, "10.128.0.0/9"},
		{"all of ten", []string{"10.0.0.0/8"}, "172.16.0.0/12"},
		{"one is left", []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/17", "192.168.128.0/18", "192.168.192.0/19",
			"192.168.224.0/20", "192.168.240.0/21", "192.168.248.0/22", "192.168.252.0/23", "192.168.255.7/32"}, "192.168.254.0/24"},
	} {
		t.Run(c.name, func(t *testing.T) {
			used := prefixes(t, c.used...)
			for range 50 {
				got, err := freeSubnet(used)
				if err != nil {
					t.Fatal(err)
				}
				if got.Bits() != 24 || got.Masked() != got || !prefixes(t, c.want)[0].Contains(got.Addr()) || overlaps(got, used) {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	if _, err := freeSubnet(prefixes(t, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")); err == nil ||
		!strings.Contains(err.Error(), "no free subnet for the lab") {
		t.Errorf("with everything in use: %v", err)
	}
}

func TestParseRoutes(t *testing.T) {
	got, err := parseRoutes(`[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","flags":[]},{"dst":"10.88.0.0/16","dev":"podman0"},
		{"type":"local","dst":"192.0.2.2","dev":"eth0"},{"dst":"broadcasts"}]`)
	if err != nil || len(got) != 2 || got[0].String() != "10.88.0.0/16" || got[1].String() != "192.0.2.2/32" {
		t.Errorf("got %v (%v)", got, err)
	}
	if _, err := parseRoutes("nothing"); err == nil {
		t.Error("nonsense is read")
	}
}

func TestTBF(t *testing.T) {
	for rate, want := range map[int64]string{
		100e6: "tc qdisc replace dev eth0 root tbf rate 100000000bit burst 131072b latency 50ms",
		1e9:   "tc qdisc replace dev eth0 root tbf rate 1000000000bit burst 1250000b latency 50ms",
	} {
		if got := strings.Join(tbf("eth0", rate), " "); got != want {
			t.Errorf("%d: %s, want %s", rate, got, want)
		}
	}
}

// A subnet that podman has given away meanwhile is drawn again; when there is
// none, nothing has been made.
func TestSubnetTaken(t *testing.T) {
	if lacks := Lacks(Needs{}); len(lacks) > 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("no lab on this machine: %v", lacks)
		}
		t.Skipf("no lab on this machine: %v", lacks)
	}
	run, err := rundir.Create(t.TempDir(), "taken", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	label := someLabel()
	label.Run = run.Short
	draws := 0
	here := ground{Dir: t.TempDir()}
	l := &Lab{run: run, label: label, ground: here, free: func(used []netip.Prefix) (netip.Prefix, error) {
		if draws++; draws == 1 {
			return netip.MustParsePrefix("10.88.0.0/24"), nil // podman's own network has it
		}
		return freeSubnet(used)
	}}
	if err := writeWhole(l.conf(), containersConf(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.joinNetwork(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := &Lab{run: run, label: label, ground: here, free: func([]netip.Prefix) (netip.Prefix, error) {
		t.Error("the network is made a second time")
		return netip.Prefix{}, errors.New("no")
	}}
	if err := again.joinNetwork(t.Context()); err != nil || again.Subnet != l.Subnet {
		t.Errorf("a second process finds %v (%v), not %v", again.Subnet, err, l.Subnet)
	}
	if draws != 2 || overlaps(l.Subnet, prefixes(t, "10.88.0.0/16")) {
		t.Errorf("after %d draws the subnet is %v", draws, l.Subnet)
	}
	if err := removeNetwork(t.Context(), networkName(run.Short)); err != nil {
		t.Fatal(err)
	}
	none := &Lab{run: run, label: label, ground: here, free: func([]netip.Prefix) (netip.Prefix, error) {
		return freeSubnet(prefixes(t, "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
	}}
	if err := none.joinNetwork(t.Context()); err == nil || !strings.Contains(err.Error(), "no free subnet") {
		t.Errorf("with no free subnet: %v", err)
	}
	left, err := Find(t.Context(), label)
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}
