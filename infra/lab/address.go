package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
)

// addressFile says in the run's folder which address each host has been given.
const addressFile = "addresses.json"

// address is a host's own in the run's subnet. Its first making gives it the
// lowest that no other host has had; made again it keeps it.
func (l *Lab) address(ctx context.Context, name string) (netip.Addr, error) {
	unlock, err := l.alone(ctx, "lock")
	if err != nil {
		return netip.Addr{}, err
	}
	defer unlock()
	path := filepath.Join(l.Dir, addressFile)
	given := map[string]netip.Addr{}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &given)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return netip.Addr{}, fmt.Errorf("reading which addresses are taken: %w", err)
	}
	if a, ok := given[name]; ok && l.Subnet.Contains(a) {
		return a, nil
	}
	if given[name], err = lowest(l.Subnet, given); err != nil {
		return netip.Addr{}, err
	}
	if data, err = json.MarshalIndent(given, "", "  "); err != nil {
		return netip.Addr{}, err
	}
	return given[name], writeWhole(path, append(data, '\n'), 0o644)
}

// lowest is the first address of a subnet that no host has. The subnet's own
// address, its gateway (the first after it) and its broadcast address are nobody's.
func lowest(subnet netip.Prefix, given map[string]netip.Addr) (netip.Addr, error) {
	taken := map[netip.Addr]bool{}
	for _, a := range given {
		taken[a] = true
	}
	for a := subnet.Masked().Addr().Next().Next(); subnet.Contains(a.Next()); a = a.Next() {
		if !taken[a] {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("the lab's network %s has no address for one more host", subnet)
}

// macOf is an address's own link address. A host that is made again keeps it,
// or its neighbours would go on sending to the old one for some time.
func macOf(ip string) string {
	b := netip.MustParseAddr(ip).As4() // ours: taken from the run's subnet
	return net.HardwareAddr{0x02, 0x6b, b[0], b[1], b[2], b[3]}.String()
}
