package lab

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"krig/internal/rundir"
)

// Each name has an address of its own, which it keeps, in another process too,
// whatever its pool is called.
func TestAddress(t *testing.T) {
	dir := t.TempDir()
	l := labAt(dir, "10.1.2.0/29")
	for _, c := range [][2]string{
		{"b1", "10.1.2.2"}, {"w1", "10.1.2.3"}, {"b1", "10.1.2.2"}, {"z1", "10.1.2.4"}, {"nfs", "10.1.2.5"}, {"b2", "10.1.2.6"},
	} {
		if got, err := l.address(t.Context(), c[0]); err != nil || got.String() != c[1] {
			t.Errorf("%s has %v (%v), want %s", c[0], got, err, c[1])
		}
	}
	if _, err := l.address(t.Context(), "b3"); err == nil || !strings.Contains(err.Error(), "no address for one more host") {
		t.Errorf("more than fit: %v", err)
	}
	again := labAt(dir, "10.1.2.0/29")
	if got, err := again.address(t.Context(), "z1"); err != nil || got.String() != "10.1.2.4" {
		t.Errorf("another process gives z1 %v (%v)", got, err)
	}
	moved := labAt(dir, "10.9.0.0/29")
	if got, err := moved.address(t.Context(), "z1"); err != nil || got.String() != "10.9.0.2" {
		t.Errorf("on another subnet z1 has %v (%v)", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, addressFile), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.address(t.Context(), "b1"); err == nil || !strings.Contains(err.Error(), "which addresses are taken") {
		t.Errorf("an unreadable file: %v", err)
	}
}

// All but three of a /24 are for hosts.
func TestAddressRoom(t *testing.T) {
	l := labAt(t.TempDir(), "192.168.7.0/24")
	seen := map[netip.Addr]bool{}
	for n := range 253 {
		a, err := l.address(t.Context(), fmt.Sprint("b", n))
		if err != nil || seen[a] {
			t.Fatalf("host %d has %v (%v)", n, a, err)
		}
		seen[a] = true
	}
	if _, err := l.address(t.Context(), "w1"); err == nil {
		t.Error("there is room for 254")
	}
}

func TestMacOf(t *testing.T) {
	if got := macOf("10.1.2.11"); got != "02:6b:0a:01:02:0b" {
		t.Errorf("10.1.2.11 has %s", got)
	}
}

func labAt(dir, subnet string) *Lab {
	return &Lab{run: &rundir.Run{Dir: dir}, ground: ground{Dir: dir, Subnet: netip.MustParsePrefix(subnet)}}
}
