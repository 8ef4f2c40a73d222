package pipeline

import (
	"encoding/json"
	"reflect"
	"testing"

	"krig/internal/experiment"
)

// A plan that was read back is the plan that was written: resume and reuse
// compare cells from disk with cells from the file.
func TestPlanReadsBackAsWritten(t *testing.T) {
	_, plan, err := Check("../../examples/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var back experiment.Plan
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	for i, c := range plan.Cells {
		if got := experiment.Between(c, back.Cells[i]); !reflect.DeepEqual(got, experiment.Transition{}) {
			t.Errorf("%s reads back as another cell: %+v", c.ID, got)
		}
	}
	if !reflect.DeepEqual(plan.Visits, back.Visits) {
		t.Errorf("visits read back as %v, not %v", back.Visits, plan.Visits)
	}
}

func TestDifferencesNameTheChange(t *testing.T) {
	then := map[string]string{"a.yaml": "1", "b.tgz": "2", "c": "3"}
	now := map[string]string{"a.yaml": "1", "b.tgz": "9", "d": "4"}
	want := []string{"input b.tgz changed", "input c is gone", "input d is new"}
	if got := differences("input ", then, now); !reflect.DeepEqual(got, want) {
		t.Errorf("differences are %q, want %q", got, want)
	}
	if got := differences("", then, then); len(got) != 0 {
		t.Errorf("no change gives %q", got)
	}
}

// An estimate that this machine has no memory for is rough, and counts what
// the plan will do: one cluster start for each disk, a resize for each size.
func TestEstimateWithoutMemory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, plan, err := Check("../../examples/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := EstimateOf(plan)
	if !e.Rough {
		t.Error("an estimate from no memory must be rough")
	}
	anew := firstGuess["infra"] + firstGuess["prepare"] + firstGuess["cluster"] + firstGuess["prime"]
	grown := firstGuess["infra"] + firstGuess["prepare"] + firstGuess["resize"] + firstGuess["prime"]
	load := float64(len(plan.Visits)) * (20 + firstGuess["around"]) // 8 s of warm-up and 12 s of load
	want := 2*anew + 4*grown + load + firstGuess["teardown"]
	if got := e.Total.Seconds(); got != want {
		t.Errorf("the demo is estimated at %v s, want %v", got, want)
	}
}

// What stages took is remembered, and makes the next estimate.
func TestEstimateFromMemory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	s := newStopwatch()
	for stage := range firstGuess {
		s.took[stage] = []float64{1, 2, 9}
	}
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	_, plan, err := Check("../../examples/smoke.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := EstimateOf(plan)
	if e.Rough {
		t.Error("all stages are remembered, and the estimate is rough")
	}
	// infra, prepare, cluster, prime, around, teardown: the median of each is 2 s; 6 s of load.
	if want := 6*2.0 + 6; e.Total.Seconds() != want {
		t.Errorf("estimated %v s, want %v", e.Total.Seconds(), want)
	}
}
