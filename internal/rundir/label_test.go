package rundir_test

import (
	"encoding/json"
	"testing"
	"time"

	"krig/internal/rundir"
)

func TestLabelTags(t *testing.T) {
	want := rundir.Label{Run: "abc123", Owner: rundir.Self().String(), Hold: rundir.HoldKept,
		Expiry: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Scope: "a/b c%."}
	tags := map[string]string{"other": "1"}
	for _, kv := range want.Tags() {
		tags[kv[0]] = kv[1]
	}
	if got := rundir.LabelFrom(tags); got != want {
		t.Errorf("%+v reads back as %+v", want, got)
	}
	if tags["krig-expiry"] != "2030-01-02T03:04:05Z" {
		t.Errorf("it expires at %s", tags["krig-expiry"])
	}
	tags["krig-expiry"] = "tomorrow"
	if got := rundir.LabelFrom(tags); !got.Expiry.IsZero() {
		t.Errorf("an unreadable expiry is %v", got.Expiry)
	}
}

func TestLabelSelects(t *testing.T) {
	thing := rundir.Label{Run: "abc123", Scope: "s"}
	for by, want := range map[rundir.Label]bool{
		{Run: "abc123", Scope: "s"}: true, {Scope: "s"}: true, {Run: "abc123"}: false, {}: false, {Run: "abc124", Scope: "s"}: false,
	} {
		if got := by.Selects(thing); got != want {
			t.Errorf("%+v: %v", by, got)
		}
	}
}

func TestLabelRemovable(t *testing.T) {
	dead := rundir.Self()
	dead.Start++
	now := time.Now()
	for _, c := range []struct {
		name   string
		owner  string
		hold   string
		expiry time.Time
		want   bool
	}{
		{"alive", rundir.Self().String(), rundir.HoldRun, now.Add(time.Hour), false},
		{"alive, no expiry", rundir.Self().String(), rundir.HoldRun, time.Time{}, false},
		{"alive, expired", rundir.Self().String(), rundir.HoldRun, now.Add(-time.Second), false},
		{"alive, kept", rundir.Self().String(), rundir.HoldKept, now.Add(time.Hour), false},
		{"alive, kept, expired", rundir.Self().String(), rundir.HoldKept, now.Add(-time.Second), true},
		{"dead", dead.String(), rundir.HoldRun, now.Add(time.Hour), true},
		{"dead, expired", dead.String(), rundir.HoldRun, now.Add(-time.Second), true},
		{"dead, kept", dead.String(), rundir.HoldKept, now.Add(time.Hour), false},
		{"dead, kept, no expiry", dead.String(), rundir.HoldKept, time.Time{}, false},
		{"dead, kept, expired", dead.String(), rundir.HoldKept, now.Add(-time.Second), true},
		{"nobody's", "", rundir.HoldRun, time.Time{}, true},
		{"unreadable", "x", "", time.Time{}, true},
	} {
		l := rundir.Label{Owner: c.owner, Hold: c.hold, Expiry: c.expiry}
		if got := l.Removable(now); got != c.want {
			t.Errorf("%s: removable is %v", c.name, got)
		}
	}
}

// What gc prints for programs has the label's words beside the thing's own.
func TestLeftoverJSON(t *testing.T) {
	data, err := json.Marshal(rundir.Leftover{Place: rundir.Place{Provider: "lab"}, Kind: "loop", Ref: "/d", Label: rundir.Label{Run: "abc123", Hold: "run"}, May: true})
	const want = `{"provider":"lab","kind":"loop","ref":"/d","run":"abc123","owner":"","hold":"run","expiry":"0001-01-01T00:00:00Z","scope":"","alive":false,"may":true}`
	if err != nil || string(data) != want {
		t.Errorf("%s (%v), want %s", data, err, want)
	}
}
