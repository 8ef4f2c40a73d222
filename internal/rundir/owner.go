package rundir

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Owner is the identity of one process: its number alone would fit another
// process after it has ended, or after this machine has started again.
type Owner struct {
	PID   int
	Start uint64 // clock ticks from the machine's start to the process's (field 22 of /proc/PID/stat)
	Boot  string // the kernel's boot id
}

// Self is the identity of this process.
func Self() Owner {
	o, err := OwnerOf(os.Getpid())
	if err != nil { // no /proc: this process is still told from those of other boots
		return Owner{PID: os.Getpid()}
	}
	return o
}

// OwnerOf is the identity of a running process; the error is os.ErrNotExist
// when there is none of that number.
func OwnerOf(pid int) (Owner, error) {
	start, _, err := processStat(pid)
	if err != nil {
		return Owner{}, err
	}
	boot, err := BootID()
	if err != nil {
		return Owner{}, err
	}
	return Owner{PID: pid, Start: start, Boot: boot}, nil
}

// Alive tells whether that very process still runs. One that has ended and
// only waits to be collected by its parent does not.
func (o Owner) Alive() bool {
	if o.PID <= 0 {
		return false
	}
	boot, err := BootID()
	if err != nil || boot != o.Boot {
		return false
	}
	start, state, err := processStat(o.PID)
	return err == nil && start == o.Start && state != 'Z' && state != 'X'
}

// String is pid:start:boot id, as in labels, the lock and the ledger.
func (o Owner) String() string {
	return fmt.Sprintf("%d:%d:%s", o.PID, o.Start, o.Boot)
}

// ParseOwner reads what [Owner.String] wrote.
func ParseOwner(s string) (Owner, error) {
	pid, rest, ok := strings.Cut(s, ":")
	start, boot, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 || boot == "" || strings.ContainsAny(boot, ": \t\n") {
		return Owner{}, fmt.Errorf("%q is not pid:start:boot id", s)
	}
	n, err := strconv.Atoi(pid)
	if err != nil || n <= 0 {
		return Owner{}, fmt.Errorf("%q does not begin with the number of a process", s)
	}
	ticks, err := strconv.ParseUint(start, 10, 64)
	if err != nil {
		return Owner{}, fmt.Errorf("%q has no start time", s)
	}
	return Owner{PID: n, Start: ticks, Boot: boot}, nil
}

// BootID is the running kernel's boot id.
func BootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// processStat reads a process's start time and state letter.
func processStat(pid int) (start uint64, state byte, err error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	return parseStat(string(data))
}

// parseStat reads fields 3 and 22. Field 2, the program's name, may hold
// anything, closing parentheses and spaces too.
func parseStat(line string) (start uint64, state byte, err error) {
	i := strings.LastIndexByte(line, ')')
	if i < 0 {
		return 0, 0, errors.New("no program name in the process's stat")
	}
	fields := strings.Fields(line[i+1:])
	const stateField, startField = 0, 19 // field 3 is the first after the name
	if len(fields) <= startField || len(fields[stateField]) != 1 {
		return 0, 0, errors.New("the process's stat is too short")
	}
	start, err = strconv.ParseUint(fields[startField], 10, 64)
	return start, fields[stateField][0], err
}
