package terraform

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"krig/infra/stack"
)

var runnersLock = stack.Lock{
	ID: "ba5628c2-f805-21a3-0ab0-28640ec83ef9", Path: "terraform.tfstate", Operation: "OperationTypeApply", Who: "ci@runner-1",
	Since: time.Date(2026, 3, 2, 18, 19, 35, 865294469, time.UTC),
}

// Real words of terraform 1.11.4 about a state that another apply holds.
func TestLockIsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/lock-error.stderr.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := readLock(string(text)); got == nil || *got != runnersLock {
		t.Errorf("of the text: %+v", got)
	}
	lines, err := os.ReadFile("testdata/lock-error.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	l := log{say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	for line := range strings.Lines(string(lines)) {
		l.line(line)
	}
	if len(l.failures) != 1 || len(said) != 0 {
		t.Fatalf("failures %v, said %q", l.failures, said)
	}
	e := l.failures[0]
	if e.Failure != stack.Locked || e.Lock == nil || *e.Lock != runnersLock {
		t.Errorf("of the JSON: %+v", e)
	}
	const want = "state locked: the state terraform.tfstate is locked; locked by ci@runner-1 since 2026-03-02 18:19:35 UTC (OperationTypeApply, lock ba5628c2-f805-21a3-0ab0-28640ec83ef9)"
	if e.Error() != want {
		t.Errorf("it reads %q", e)
	}
	if lockOf(failure("plan", l.failures, nil)) != e.Lock || lockOf(failure("plan", nil, fmt.Errorf("exit status 1: %s", text))) == nil {
		t.Error("the failure of a command does not tell of the lock")
	}
}

func TestNoLock(t *testing.T) {
	for _, text := range []string{"", "Error: no", "Lock Info:", "Lock Info:\n  ID:  \n", "  ID: 5\n"} {
		if l := readLock(text); l != nil {
			t.Errorf("%q: %+v", text, l)
		}
	}
}

func TestClassify(t *testing.T) {
	for message, want := range map[string]stack.Failure{
		"creating EC2 Instance: api error InsufficientInstanceCapacity: We currently do not have sufficient m7i.large capacity": stack.Capacity,
		"Error waiting for instance to create: The zone 'x' does not have enough resources available to fulfill the request":    stack.Capacity,
		"api error VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 32":                 stack.Quota,
		"googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 24.0 in region europe-west1., quotaExceeded":                       stack.Quota,
		"api error RequestLimitExceeded: Request limit exceeded.":                                                               stack.Throttled,
		"googleapi: Error 403: Rate Limit Exceeded, rateLimitExceeded":                                                          stack.Throttled,
		"No valid credential sources found":                          stack.Credentials,
		"google: could not find default credentials.":                stack.Credentials,
		"creating EC2 Instance: api error InvalidParameterValue: no": stack.Other,
	} {
		if got := classify(message); got != want {
			t.Errorf("%s: %q, not %q", message, got, want)
		}
	}
}

// What happens is told once, and what is no line of the format is no news.
func TestLog(t *testing.T) {
	const lines = `{"@message":"x: Plan to create","type":"planned_change","change":{"resource":{"addr":"x"},"action":"create"}}
not JSON
{"@message":"Plan: 1 to add","type":"change_summary"}
{"@message":"x: Creating...","type":"apply_start","hook":{"resource":{"addr":"x"}}}
{"@message":"Outputs: 2","type":"outputs","outputs":{"hosts":{"sensitive":false,"type":"string","value":["x"]},"key":{"sensitive":true,"type":"string"}}}
{"@message":"new in version 9","type":"unheard_of"}
{"@message":"Warning: old","type":"diagnostic","diagnostic":{"severity":"warning","summary":"old","detail":"use new"}}
{"@message":"Error: boom","type":"diagnostic","diagnostic":{"severity":"error","summary":"boom","detail":"it broke","address":"x"}}
`
	for planned, want := range map[bool][]string{
		false: {"plan: create x", "Plan: 1 to add", "x: Creating...", "warning: old: use new"},
		true:  {"Plan: 1 to add", "x: Creating...", "warning: old: use new"},
	} {
		var said []string
		l := log{planned: planned, say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
		for line := range strings.Lines(lines) {
			l.line(strings.TrimSpace(line))
		}
		if !reflect.DeepEqual(said, want) {
			t.Errorf("planned %v: said %q", planned, said)
		}
		if string(l.hosts) != `["x"]` {
			t.Errorf("the hosts are %s", l.hosts)
		}
		if len(l.failures) != 1 || l.failures[0].Error() != "x: boom: it broke" {
			t.Errorf("failures %v", l.failures)
		}
	}
}

func FuzzLog(f *testing.F) {
	lines, err := os.ReadFile("testdata/lock-error.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(lines)) {
		f.Add(line)
	}
	f.Add(`{"type":"planned_change","change":{"resource":{"addr":"a.b[\"c\"]"},"action":"create"}}`)
	f.Fuzz(func(t *testing.T, line string) {
		l := log{say: func(string, ...any) {}}
		l.line(line)
		for _, e := range l.failures {
			if e.Lock != nil && (e.Lock.ID == "" || e.Failure != stack.Locked) {
				t.Errorf("%+v", e)
			}
		}
	})
}
