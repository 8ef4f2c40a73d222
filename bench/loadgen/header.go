package loadgen

import "encoding/binary"

// The header is the first eight bytes of a record's value: the producing
// worker's number and the intended send in microseconds since the epoch on
// that worker's clock. A probe has its producer's index in the time's place: no load runs in
// the first hour of 1970.
const (
	headerSize = 8
	workerBits = 10
	timeBits   = 64 - workerBits
	probeLimit = int64(3600 * 1e6) // below it a time is a probe's producer
)

func putHeader(value []byte, worker int, micros int64) {
	if len(value) >= headerSize {
		binary.BigEndian.PutUint64(value, uint64(worker)<<timeBits|uint64(micros))
	}
}

func header(value []byte) (worker int, micros int64, ok bool) {
	if len(value) < headerSize {
		return 0, 0, false
	}
	h := binary.BigEndian.Uint64(value)
	return int(h >> timeBits), int64(h & (1<<timeBits - 1)), true
}
