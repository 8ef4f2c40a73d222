package provision

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"krig/internal/kafka"
	"krig/internal/rundir"
)

// readBack fills in every broker's effective configuration, as the admin API
// gives it, and warns of what differs in meaning from what was asked.
func (s *site) readBack(ctx context.Context, cl *rundir.Cluster) error {
	adm, err := kafka.Admin(s.f, cl)
	if err != nil {
		return err
	}
	defer adm.Close()
	ids := make([]int32, len(cl.Brokers))
	for i, b := range cl.Brokers {
		ids[i] = b.ID
	}
	got, err := adm.DescribeBrokerConfigs(ctx, ids...)
	if err != nil {
		return fmt.Errorf("reading the effective configuration back: %w", err)
	}
	effective := map[string]map[string]string{}
	for _, r := range got {
		if r.Err != nil {
			return fmt.Errorf("reading the effective configuration of broker %s back: %w", r.Name, r.Err)
		}
		effective[r.Name] = told(r.Configs)
	}
	cl.Warnings = []string{}
	for i := range cl.Brokers {
		b := &cl.Brokers[i]
		b.Effective = effective[fmt.Sprint(b.ID)]
		for _, w := range differences(b.Asked, b.Effective) {
			cl.Warnings = append(cl.Warnings, fmt.Sprintf("broker %d: %s", b.ID, w))
		}
	}
	return nil
}

// What stands for a value that the admin API gives as null, and why.
const (
	nullSensitive = "null (sensitive: Kafka does not tell it)"
	nullUnset     = "null (no value is set)"
)

// told are a broker's settings with their values, or the reason for none.
func told(configs []kadm.Config) map[string]string {
	out := map[string]string{}
	for _, c := range configs {
		switch {
		case c.Value != nil:
			out[c.Key] = *c.Value
		case c.Sensitive:
			out[c.Key] = nullSensitive
		default:
			out[c.Key] = nullUnset
		}
	}
	return out
}

// differences names the settings whose effective value does not mean what was
// asked, or is kept from us. Settings that the admin API does not list are left out.
func differences(asked, effective map[string]string) []string {
	var out []string
	for _, k := range sortedKeys(asked) {
		got, listed := effective[k]
		if got == nullSensitive {
			out = append(out, k+" cannot be read back: it is sensitive, and Kafka does not tell it")
			continue
		}
		if listed && !kafka.SameMeaning(asked[k], got) {
			out = append(out, fmt.Sprintf("%s was asked to be %s and is %s", k, asked[k], got))
			continue
		}
		if finer, v := outranked(k, asked, effective); finer != "" {
			out = append(out, fmt.Sprintf("%s=%s does not count: %s=%s outranks it", k, asked[k], finer, v))
		}
	}
	return out
}

// units are the endings of settings that Kafka knows in several units, the
// finest first, with what one is in milliseconds.
var units = []struct {
	ending string
	millis int64
}{{".ms", 1}, {".seconds", 1000}, {".minutes", 60_000}, {".hours", 3_600_000}}

// outranked looks for the same setting in a finer unit, which Kafka prefers
// where it is set, and returns it where it means something else.
func outranked(key string, asked, effective map[string]string) (finer, value string) {
	for i, u := range units {
		stem, ok := strings.CutSuffix(key, u.ending)
		if !ok {
			continue
		}
		own, ok := kafka.Number(asked[key])
		if !ok {
			return "", ""
		}
		own.Mul(own, new(big.Rat).SetInt64(u.millis))
		for _, f := range units[:i] {
			v, set := effective[stem+f.ending]
			other, ok := kafka.Number(v)
			if !set || !ok {
				continue
			}
			if other.Mul(other, new(big.Rat).SetInt64(f.millis)).Cmp(own) != 0 {
				return stem + f.ending, v
			}
		}
	}
	return "", ""
}
