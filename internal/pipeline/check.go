package pipeline

import (
	"context"
	"fmt"
	"time"

	"krig/bench"
	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/rundir"
	"krig/provision"
)

// Check reads an experiment and asks every stage what it cannot do. It
// contacts nothing. All problems come in one error, each with its place.
func Check(file string, set ...string) (*experiment.File, *experiment.Plan, error) {
	f, err := experiment.Load(file, set...)
	if f != nil {
		err = f.Check(infra.Refuse, provision.Check, bench.Check)
	}
	if err != nil {
		return nil, nil, &Refused{[]error{err}}
	}
	plan, err := f.Plan()
	if err != nil {
		return nil, nil, &Refused{[]error{err}}
	}
	return f, plan, nil
}

// able asks this machine whether it can make the rigs of a plan. What a run
// merely does less well without is told to listen.
func able(ctx context.Context, f *experiment.File, plan *experiment.Plan, listen func(rundir.Event)) error {
	var out []error
	for _, l := range infra.Check(ctx, plan.Cells) {
		if l.Warning {
			if listen != nil {
				listen(rundir.Event{At: time.Now(), Stage: "infra", Message: l.What + "; " + l.Remedy})
			}
			continue
		}
		err := fmt.Errorf("this machine cannot run %s: %s; %s", f.Path, l.What, l.Remedy)
		if l.Path != "" {
			err = f.Locate(experiment.Problem{Path: l.Path, Reason: l.What, Expected: l.Remedy})
		}
		out = append(out, err)
	}
	if len(out) > 0 {
		return &Refused{out}
	}
	return nil
}
