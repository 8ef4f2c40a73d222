package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
)

// linkName is every host's network device.
const linkName = "eth0"

// shape limits a host's link: its own end slows what it sends, the machine's
// end of the pair what it receives. Both end with the container.
func shape(ctx context.Context, pid int, rate int64) error {
	if rate == 0 {
		return nil
	}
	inside := []string{"nsenter", "--target", strconv.Itoa(pid), "--net"}
	out, err := tool(ctx, append(inside, "ip", "-json", "link", "show", linkName)...)
	if err != nil {
		return fmt.Errorf("shaping the link: %w", err)
	}
	outer, err := outerEnd(out)
	if err != nil {
		return fmt.Errorf("shaping the link: %w", err)
	}
	if _, err := tool(ctx, append(inside, tbf(linkName, rate)...)...); err != nil {
		return fmt.Errorf("shaping what the host sends: %w", err)
	}
	if _, err := tool(ctx, tbf(outer, rate)...); err != nil {
		return fmt.Errorf("shaping what the host receives: %w", err)
	}
	return nil
}

// outerEnd finds the machine's end of a host's pair of devices.
func outerEnd(text string) (string, error) {
	var links []struct {
		Index int `json:"link_index"`
	}
	if err := json.Unmarshal([]byte(text), &links); err != nil || len(links) != 1 || links[0].Index == 0 {
		return "", fmt.Errorf("finding the outer end of %s: ip said %q", linkName, text)
	}
	dev, err := net.InterfaceByIndex(links[0].Index)
	if err != nil {
		return "", fmt.Errorf("finding the outer end of %s: %w", linkName, err)
	}
	return dev.Name, nil
}

// tbf is a token bucket of a rate in bits a second. The bucket holds 10 ms,
// and at least two of the largest packets that the kernel hands down whole, or
// the rate would not be reached; over a second it adds at most 1 %.
func tbf(device string, rate int64) []string {
	burst := max(rate/8/100, 128<<10)
	return []string{"tc", "qdisc", "replace", "dev", device, "root", "tbf",
		"rate", strconv.FormatInt(rate, 10) + "bit", "burst", strconv.FormatInt(burst, 10) + "b", "latency", "50ms"}
}
