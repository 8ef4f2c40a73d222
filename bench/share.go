package bench

import (
	"krig/internal/result"
)

// shares sets share.disk and share.network of every host with a known limit:
// what it moved in the steady phase over the limit, the fuller direction of the two.
// sar's own %ifutil is left aside: it takes the link's nominal speed.
func (c *collection) shares(hosts map[string]result.HostResult) {
	if c.s.rig.Limits == nil {
		return
	}
	for name, h := range hosts {
		limit, ok := c.s.rig.Limits.Hosts[name]
		if !ok {
			continue
		}
		setShare(h.Measures, "share.disk", map[string]*float64{"disk.write": limit.DiskWrite, "disk.read": limit.DiskRead})
		setShare(h.Measures, "share.network", map[string]*float64{"network.receive": limit.Network, "network.transmit": limit.Network})
	}
}

// setShare sets the largest share of several directions, each with its limit;
// without any limit nothing is set.
func setShare(m result.Measures, name string, limits map[string]*float64) {
	var most *float64
	limited := false
	for measure, limit := range limits {
		if limit == nil || *limit <= 0 {
			continue
		}
		limited = true
		if used, ok := m.Get(measure); ok {
			share := used / *limit
			if most == nil || share > *most {
				most = &share
			}
		}
	}
	switch {
	case most != nil:
		m.Set(name, *most, result.Ratio)
	case limited:
		m.SetUnknown(name, result.Ratio, "what it moved is not known")
	}
}
