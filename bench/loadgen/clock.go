package loadgen

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// A clock tells nanoseconds since its base, by the monotonic clock, and the
// wall's time for them. It is not moved by a step of the wall's clock.
type clock struct{ base time.Time }

func newClock() clock { return clock{base: time.Now()} }

func (c clock) now() int64              { return int64(time.Since(c.base)) }
func (c clock) wall(at int64) int64     { return c.base.UnixNano() + at }
func (c clock) at(wall int64) int64     { return wall - c.base.UnixNano() }
func (c clock) time(at int64) time.Time { return c.base.Add(time.Duration(at)) }

// A sleeper waits until a moment of the clock.
type sleeper func(at int64)

// fineSleeper locks the calling goroutine to its thread, for good, and sleeps by
// the kernel's own timer: Go's timers wake up to a millisecond late when
// nothing else runs. The thread gets as little timer slack as there is and runs
// before all that is not real-time, since a generator that waits for a processor would
// put its own lateness on the cluster; without the rights it goes on as it is.
// It takes both along when the goroutine ends.
func fineSleeper(c clock) sleeper {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if unix.SchedSetAttr(0, &fifo, 0) != nil {
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -15)
	}
	return func(at int64) {
		left := at - c.now()
		if left <= 0 {
			return
		}
		ts := unix.NsecToTimespec(left)
		for unix.Nanosleep(&ts, &ts) == unix.EINTR {
		}
	}
}
