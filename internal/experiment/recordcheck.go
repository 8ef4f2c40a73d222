package experiment

import (
	"fmt"
	"strconv"
)

const (
	usualMessageMax = 1048588 // Kafka's message.max.bytes where the experiment has none
	batchHeader     = 61      // bytes of a batch beside its records
)

// checkRecordSize refuses records that brokers refuse. What compression makes
// of a record is not known before, and what krig cannot read is Kafka's to judge.
func checkRecordSize(c *Cell) []Problem {
	most := int64(usualMessageMax)
	if text, ok := c.Kafka.Broker["message.max.bytes"]; ok {
		var err error
		if most, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil
		}
	}
	if codec := c.Bench.Producer["compression.type"]; codec != "" && codec != "none" {
		return nil
	}
	if int64(c.Bench.RecordSize)+batchHeader < most {
		return nil
	}
	return []Problem{{Path: "bench.record_size", Reason: fmt.Sprintf("%s does not fit a broker's message.max.bytes of %d", c.Bench.RecordSize, most),
		Expected: "a smaller record, or a larger kafka.broker.message.max.bytes"}}
}
