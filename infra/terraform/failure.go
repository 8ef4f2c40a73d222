package terraform

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"regexp"
	"strings"
	"time"

	"krig/infra/stack"
)

// failure is what went wrong with a command: each failed resource with the
// provider's own words or, where the program named none, its last ones.
func failure(doing string, failures []*stack.Error, err error) error {
	var errs []error
	for _, f := range failures {
		errs = append(errs, f)
	}
	if len(errs) == 0 {
		f := newFailure("", err.Error())
		if f.Lock == nil && f.Failure == stack.Other {
			return fmt.Errorf("%s: %w", doing, err)
		}
		errs = append(errs, f)
	}
	return fmt.Errorf("%s: %w", doing, errors.Join(errs...))
}

// words are by what the clouds' messages tell one failure from another; the
// first that fits counts (a rate is a limit, too).
var words = []struct {
	failure stack.Failure
	any     *regexp.Regexp
}{
	{stack.Capacity, regexp.MustCompile(`(?i)InsufficientInstanceCapacity|InsufficientHostCapacity|InsufficientFreeAddresses|ZONE_RESOURCE_POOL_EXHAUSTED|does not have enough resources available`)},
	{stack.Throttled, regexp.MustCompile(`(?i)RequestLimitExceeded|Throttling|TooManyRequests|rateLimitExceeded|HTTP response code 429`)},
	{stack.Quota, regexp.MustCompile(`(?i)VcpuLimitExceeded|InstanceLimitExceeded|LimitExceeded|MaxSpotInstanceCountExceeded|QUOTA_EXCEEDED|quotaExceeded|Quota '[^']*' exceeded`)},
	{stack.Credentials, regexp.MustCompile(`(?i)No valid credential sources|UnauthorizedOperation|AuthFailure|InvalidClientTokenId|ExpiredToken|could not find default credentials|Error 401`)},
}

func classify(message string) stack.Failure {
	for _, w := range words {
		if w.any.MatchString(message) {
			return w.failure
		}
	}
	return stack.Other
}

// lockField is a line of the lock's description, which terraform and tofu write
// into text and JSON alike.
var lockField = regexp.MustCompile(`(?m)^\s*(ID|Path|Operation|Who|Created):[ \t]+(.*?)\s*$`)

// readLock reads who holds a state from the message that says so; nil is no
// such message.
func readLock(message string) *stack.Lock {
	_, about, ok := strings.Cut(message, "Lock Info:")
	if !ok {
		return nil
	}
	var l stack.Lock
	for _, m := range lockField.FindAllStringSubmatch(about, -1) {
		switch m[1] {
		case "ID":
			l.ID = m[2]
		case "Path":
			l.Path = m[2]
		case "Operation":
			l.Operation = m[2]
		case "Who":
			l.Who = m[2]
		case "Created":
			// A form that is not known leaves the time unknown.
			l.Since, _ = time.Parse("2006-01-02 15:04:05.999999999 -0700 MST", m[2])
		}
	}
	if l.ID == "" {
		return nil
	}
	return &l
}

// lockOf is the lock that an error tells of.
func lockOf(err error) *stack.Lock {
	var e *stack.Error
	if errors.As(err, &e) {
		return e.Lock
	}
	return nil
}

// ours tells whether a lock is a dead program's of this very run: of this user
// on this machine, and of the run's own workspace, which no other krig works in
// while this one has the run. Its program has been ended by the ledger before
// anything is destroyed.
func (f *folder) ours(l stack.Lock) bool {
	host, err := os.Hostname()
	me, uerr := user.Current()
	return err == nil && uerr == nil && l.Who == me.Username+"@"+host &&
		f.Workspace != "" && strings.Contains(l.Path, f.Workspace)
}
