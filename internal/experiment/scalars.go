package experiment

import "time"

// Bytes is a size. In the file it carries its unit: B, kB, MB, GB (powers of
// ten), KiB, MiB, GiB, TiB (powers of two).
type Bytes int64

// Rate is bytes per second; in the file a size followed by /s. 0 means not limited.
type Rate int64

// BitRate is a link's speed in bits per second; in the file kbit, mbit or
// gbit. 0 means not shaped.
type BitRate int64

// Duration is a length of time; in the file ms, s, m or h. 0 means not set.
type Duration time.Duration

// Count is a number of things, in all (Per is "") or for each of something.
// In the file it is written 12, 2_000_000 or "4 per worker".
// Set tells a written 0 from a count that is not there.
type Count struct {
	N   int64
	Per string // "", broker, worker, topic or producer
	Set bool
}

// SendRate is records per second over all producers. Max (in the file: max)
// means as fast as the cluster takes them; then Value is 0.
type SendRate struct {
	Max   bool
	Value float64
}
