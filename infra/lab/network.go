package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"krig/infra/child"
)

// networkName is the run's network.
func networkName(short string) string { return "krig-" + short }

// joinNetwork finds the run's network, or makes it on a subnet that is free.
func (l *Lab) joinNetwork(ctx context.Context) error {
	const tries = 8 // another krig may take the chosen subnet first
	var err error
	for range tries {
		var have []network
		if have, err = listNetworks(ctx); err != nil {
			return fmt.Errorf("looking for the run's network: %w", err)
		}
		i := slices.IndexFunc(have, func(n network) bool { return n.Name == networkName(l.run.Short) && len(n.Subnets) == 1 })
		if i >= 0 {
			l.Subnet, err = netip.ParsePrefix(have[i].Subnets[0].Subnet)
			return err
		}
		err = l.makeNetwork(ctx, have)
		if err == nil || !strings.Contains(err.Error(), "already used") {
			return err
		}
	}
	return err
}

func (l *Lab) makeNetwork(ctx context.Context, have []network) error {
	used, err := usedSubnets(ctx, have)
	if err != nil {
		return err
	}
	subnet, err := l.free(used)
	if err != nil {
		return err
	}
	name := networkName(l.run.Short)
	args := append([]string{"network", "create", "--disable-dns", "--subnet", subnet.String()}, flags(l.label)...)
	err = l.record(KindNetwork, name, func() error {
		_, err := l.podman(ctx, append(args, name)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("making the run's network on %s: %w", subnet, err)
	}
	l.Subnet = subnet
	return nil
}

// pinBridge keeps the link address of the run's bridge, the machine's own in the
// run's network. By itself it changes with each host that joins, and those that
// know the earlier one send there for some seconds, to nobody. The first host
// makes the bridge, so each pins it before it is spoken to.
func (l *Lab) pinBridge(ctx context.Context) error {
	unlock, err := l.alone(ctx, "lock")
	if err != nil {
		return err
	}
	defer unlock()
	dev, err := deviceOf(l.Subnet.Masked().Addr().Next())
	if err != nil {
		return fmt.Errorf("finding the bridge of the run's network: %w", err)
	}
	const set = "3" // NET_ADDR_SET: given by a user, so that the kernel leaves it
	if how, err := os.ReadFile("/sys/class/net/" + dev.Name + "/addr_assign_type"); err == nil && strings.TrimSpace(string(how)) == set {
		return nil
	}
	if _, err := tool(ctx, "ip", "link", "set", "dev", dev.Name, "address", dev.HardwareAddr.String()); err != nil {
		return fmt.Errorf("keeping the link address of %s: %w", dev.Name, err)
	}
	return nil
}

// deviceOf is this machine's network device with an address.
func deviceOf(a netip.Addr) (net.Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return net.Interface{}, err
	}
	for _, dev := range all {
		addrs, err := dev.Addrs()
		if err != nil { // it is gone by now
			continue
		}
		for _, have := range addrs {
			if p, err := netip.ParsePrefix(have.String()); err == nil && p.Addr() == a {
				return dev, nil
			}
		}
	}
	return net.Interface{}, fmt.Errorf("no device has the address %s", a)
}

// NoSubnet is the lack of a free subnet, if there is none.
func NoSubnet(ctx context.Context) (child.Lack, bool) {
	have, err := listNetworks(ctx)
	if err != nil {
		return child.Lack{What: err.Error(), Remedy: "podman network ls must work"}, true
	}
	used, err := usedSubnets(ctx, have)
	if err == nil {
		_, err = freeSubnet(used)
	}
	if err != nil {
		return child.Lack{What: err.Error(), Remedy: "podman network prune removes the networks that nothing uses"}, true
	}
	return child.Lack{}, false
}

// usedSubnets are those that this machine routes or podman has given away.
func usedSubnets(ctx context.Context, have []network) ([]netip.Prefix, error) {
	out, err := tool(ctx, "ip", "-4", "-json", "route", "show", "table", "all")
	if err != nil {
		return nil, fmt.Errorf("looking for free subnets: %w", err)
	}
	used, err := parseRoutes(out)
	if err != nil {
		return nil, err
	}
	for _, n := range have {
		for _, s := range n.Subnets {
			if p, err := netip.ParsePrefix(s.Subnet); err == nil {
				used = append(used, p)
			}
		}
	}
	return used, nil
}

// parseRoutes reads ip's list. The default route claims no addresses.
func parseRoutes(text string) ([]netip.Prefix, error) {
	var routes []struct{ Dst string }
	if err := json.Unmarshal([]byte(text), &routes); err != nil {
		return nil, fmt.Errorf("reading this machine's routes: %w", err)
	}
	var out []netip.Prefix
	for _, r := range routes {
		if p, err := netip.ParsePrefix(r.Dst); err == nil {
			out = append(out, p)
		} else if a, err := netip.ParseAddr(r.Dst); err == nil {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out, nil
}

// freeSubnet draws a /24 of the private ranges that overlaps with none in use.
func freeSubnet(used []netip.Prefix) (netip.Prefix, error) {
	for _, pool := range []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"),
		netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"),
	} {
		n := 1 << (24 - pool.Bits())
		first := rand.IntN(n)
		for i := range n {
			if p := nth24(pool, (first+i)%n); !overlaps(p, used) {
				return p, nil
			}
		}
	}
	return netip.Prefix{}, errors.New("no free subnet for the lab: every /24 of 10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16 is routed or given to a podman network")
}

func nth24(pool netip.Prefix, n int) netip.Prefix {
	a := pool.Addr().As4()
	v := (int(a[0])<<16 | int(a[1])<<8 | int(a[2])) + n
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(v >> 16), byte(v >> 8), byte(v), 0}), 24)
}

func overlaps(p netip.Prefix, used []netip.Prefix) bool {
	for _, u := range used {
		if p.Overlaps(u) {
			return true
		}
	}
	return false
}
