package terraform

import (
	"encoding/json"
	"fmt"
	"strings"

	"krig/infra/stack"
)

// log reads the lines of terraform's and tofu's -json output: see "Machine-
// Readable UI" of Terraform's documentation, version 1.2 of the format.
type log struct {
	say      func(format string, args ...any)
	planned  bool // the changes have been told: what repeats them is not
	failures []*stack.Error
	hosts    json.RawMessage // the output of that name; nil when it is not shown
}

// entry is as much of a line as is used. What is not known is passed over: the
// format grows.
type entry struct {
	Type    string `json:"type"`
	Message string `json:"@message"`
	Change  struct {
		Resource resource `json:"resource"`
		Action   string   `json:"action"`
	} `json:"change"`
	Hook struct {
		Resource resource `json:"resource"`
	} `json:"hook"`
	Diagnostic diagnostic `json:"diagnostic"`
	Outputs    map[string]struct {
		Value json.RawMessage `json:"value"` // absent of what is sensitive, or not known yet
	} `json:"outputs"`
}

type resource struct {
	Address string `json:"addr"`
}

type diagnostic struct {
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	Address  string `json:"address"`
}

// line takes one line. Some of a plugin's own words are no JSON, and no news.
func (l *log) line(text string) {
	var e entry
	if json.Unmarshal([]byte(text), &e) != nil {
		return
	}
	switch e.Type {
	case "planned_change":
		if !l.planned {
			l.say("plan: %s %s", e.Change.Action, e.Change.Resource.Address)
		}
	case "change_summary", "apply_start", "apply_complete", "apply_progress", "apply_errored":
		l.say("%s", e.Message)
	case "outputs":
		l.hosts = e.Outputs[hostsName].Value
	case "diagnostic":
		l.diagnosed(e.Diagnostic)
	}
}

func (l *log) diagnosed(d diagnostic) {
	message := d.Summary
	if d.Detail != "" {
		message += ": " + strings.TrimSpace(d.Detail)
	}
	if d.Severity != "error" {
		l.say("%s: %s", d.Severity, message)
		return
	}
	l.failures = append(l.failures, newFailure(d.Address, message))
}

// newFailure reads a provider's own words.
func newFailure(address, message string) *stack.Error {
	e := &stack.Error{Address: address, Message: message, Failure: classify(message), Lock: readLock(message)}
	if e.Lock != nil {
		e.Failure = stack.Locked
		e.Message = fmt.Sprintf("the state %s is locked", e.Lock.Path)
	}
	return e
}
