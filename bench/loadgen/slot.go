package loadgen

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A slot is a record that is used again and again. Its value is random, so that no
// codec makes it smaller, and differs from every other slot's; only the header changes
// between uses. Sending costs no copy and no allocation of ours.
type slot struct {
	rec      kgo.Record
	intended int64 // clock ns; at a ceiling the call
	called   int64
	inside   bool // intended inside the window
	promise  func(*kgo.Record, error)
}

// slots is a producer's free slots: a ring with one goroutine that takes (the
// sender) and one that gives (the client's, which calls promises one by one).
type slots struct {
	ring []*slot
	head atomic.Uint64 // next to take
	tail atomic.Uint64 // next to give
	size int
	rand *rand.ChaCha8
	make func(*slot) func(*kgo.Record, error)
}

// newSlots makes a pool for values of size bytes that keeps at most keep free ones.
func newSlots(size, keep int, seed uint64, promise func(*slot) func(*kgo.Record, error)) *slots {
	n := 16
	for n < keep && n < 1<<16 {
		n *= 2
	}
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return &slots{ring: make([]*slot, n), size: size, rand: rand.NewChaCha8(key), make: promise}
}

// take returns a free slot, or a new one when there is none.
func (s *slots) take() *slot {
	head := s.head.Load()
	if head == s.tail.Load() {
		return s.fresh()
	}
	got := s.ring[head%uint64(len(s.ring))]
	s.head.Store(head + 1)
	return got
}

func (s *slots) fresh() *slot {
	n := &slot{}
	n.rec.Value = make([]byte, s.size)
	_, _ = s.rand.Read(n.rec.Value) // never fails
	n.promise = s.make(n)
	return n
}

// give takes a slot back, or leaves it to the collector when the ring is full.
func (s *slots) give(free *slot) {
	tail := s.tail.Load()
	if tail-s.head.Load() == uint64(len(s.ring)) {
		return
	}
	s.ring[tail%uint64(len(s.ring))] = free
	s.tail.Store(tail + 1)
}
