// Package agent is the protocol between krig and krig-agent: length-framed
// messages on one SSH session's stdin and stdout, several calls at once, stdin
// the lease. Both programs import it; it is apart from internal/remote so that
// the agent carries no SSH. It does not know how the agent got to its host.
//
// # Protocol
//
// The agent greets with one line of text, "krig-agent <protocol> <build>". After
// it both sides send frames: four bytes of length, most significant first, and
// as much JSON. A frame belongs to a call by its number. Each side may have
// one window of unread bytes on the way for each call; reading opens it again,
// so that a call that nobody reads holds up itself alone. krig says every 5 s
// that it is there: the lease ends with the stream, and after a minute of
// silence, since a machine that loses its power ends no stream.
package agent

import (
	"encoding/json"
	"errors"
	"runtime/debug"
	"strings"
)

// Protocol is the number of this protocol. Programs of different numbers refuse each other.
const Protocol = 1

// ErrGreeting means that what answered is no krig-agent, or one that does not
// fit this krig.
var ErrGreeting = errors.New("no krig-agent that fits this krig")

// ErrLease means that krig is gone: the lease has ended.
var ErrLease = errors.New("the lease has ended")

// Message is one message of a call.
type Message struct {
	Kind string // chosen by the verb, such as "line", "interval", "ready"
	Body json.RawMessage
}

// Error is a verb that failed on the agent.
type Error struct {
	Verb   string
	Reason string
}

// Error names the verb and says what the agent said.
func (e *Error) Error() string { return e.Verb + ": " + e.Reason }

// build is set when krig and krig-agent are linked, to the same name for both:
// -ldflags "-X krig/internal/agent.build=NAME".
var build string //nolint:gochecknoglobals // the linker knows no other place

// unknownBuild is the name of a program that does not know its source.
const unknownBuild = "unknown"

// BuildName is the source that this program was built from: the name given when it was
// linked, else the commit, else "unknown", as in tests.
func BuildName() string {
	if build != "" {
		return strings.Join(strings.Fields(build), "_") // the greeting is split at spaces
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknownBuild
	}
	name, dirty := unknownBuild, ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			name = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	return name + dirty
}
