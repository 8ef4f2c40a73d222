package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
	"krig/provision"
)

// Standing is what of a run stands at present: standing.json of its directory.
// down, ssh and --reuse start from it.
type Standing struct {
	Rig      string           `json:"rig"`
	N        int              `json:"n"`
	M        int              `json:"m"`
	Cell     *experiment.Cell `json:"cell"` // what it was last made for
	Hosts    []rundir.Host    `json:"hosts"`
	Prepared *rundir.Prepared `json:"prepared"`
	Limits   *rundir.Limits   `json:"limits"`
	Cluster  *rundir.Cluster  `json:"cluster"` // nil when Kafka does not run
}

const standingFile = "standing.json"

// ReadStanding reads what of a run stands; nil when nothing does.
func ReadStanding(run *rundir.Run) (*Standing, error) {
	var s Standing
	err := run.ReadJSON(&s, standingFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// stand writes down what stands, for readers of the run directory and for the
// next process.
func (fl *flow) stand() error {
	r := fl.rig
	if r.N == 0 {
		return nil
	}
	n := strconv.Itoa(r.N)
	err := errors.Join(
		fl.owner.WriteJSON(r.Standing, standingFile),
		fl.run.WriteJSON(r.Hosts, "rigs", r.Rig, n, "hosts.json"),
		fl.run.WriteJSON(r.Prepared, "rigs", r.Rig, n, "prepared.json"),
		fl.run.WriteJSON(r.Limits, "rigs", r.Rig, n, "limits.json"),
	)
	if r.Cluster != nil && r.M > 0 {
		err = errors.Join(err, fl.run.WriteJSON(r.Cluster, "rigs", r.Rig, n, "clusters", strconv.Itoa(r.M)+".json"))
	}
	return err
}

// adopt takes over the rig that another run left standing.
func (fl *flow) adopt(dir string) error {
	owner, err := rundir.Open(dir)
	if err != nil {
		return &Refused{[]error{err}}
	}
	if err := owner.Lock(); err != nil {
		return &Refused{[]error{err}}
	}
	s, err := ReadStanding(owner)
	if err == nil && s == nil {
		err = fmt.Errorf("nothing of run %s stands: make a rig with krig up, or leave --reuse out", owner.ID)
	}
	if err != nil {
		return &Refused{[]error{errors.Join(err, owner.Close())}}
	}
	if other := fl.otherRig(s.Rig); other != "" {
		return &Refused{[]error{errors.Join(fmt.Errorf("run %s keeps rig %s and the experiment asks for rig %s: leave --reuse out, or name the rig %s", owner.ID, s.Rig, other, s.Rig), owner.Close())}}
	}
	owner.Listen(fl.run.Report)
	fl.owner = owner
	fl.states[s.Rig] = 1
	fl.rig = &rig{Standing: *s}
	fl.rig.N = 1
	fl.rig.M = min(fl.rig.M, 1)
	return fl.stand()
}

// otherRig is a rig of the plan that is not the given one; "" when there is none.
func (fl *flow) otherRig(name string) string {
	for _, c := range fl.plan.Cells {
		if c.RigName != name {
			return c.RigName
		}
	}
	return ""
}

// leave ends agents and connections and lets the rig stand.
func (fl *flow) leave() error {
	err := errors.Join(fl.quiet(), fl.fleet.Close(), fl.clock.save())
	if fl.owner != fl.run {
		err = errors.Join(err, fl.owner.Close())
	}
	return errors.Join(err, fl.run.Close())
}

// teardown undoes everything on a context of its own and fills in what it
// could not remove.
func (fl *flow) teardown(ctx context.Context, out *Outcome) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), infra.UndoLimit(fl.owner))
	defer cancel()
	fl.say("teardown", "taking everything down")
	end := fl.clock.start("teardown")
	err := fl.remove(ctx)
	end()
	if left, ok := leftovers(err); ok {
		out.Leftovers = left
	}
	return errors.Join(err, fl.leave())
}

// remove gives hosts back and removes them.
func (fl *flow) remove(ctx context.Context) error {
	err := fl.quiet()
	var back error
	if fl.rig != nil {
		back = giveBack(ctx, fl.owner, fl.fleet, &fl.rig.Standing)
		fl.rig = nil
	}
	return errors.Join(err, down(ctx, fl.owner, back))
}

// giveBack stops Kafka, brings its logs home and restores the hosts.
func giveBack(ctx context.Context, owner *rundir.Run, fleet *remote.Fleet, s *Standing) error {
	var err error
	if s.Cluster != nil {
		err = provision.Stop(ctx, owner, fleet, s.Cluster)
	}
	return errors.Join(err, provision.Restore(ctx, owner, fleet, s.Hosts))
}

// down removes everything of the run and lists again. back is what giving the
// hosts back met: hosts that are gone whole owe nothing, so it counts only
// while the ledger still has something standing on a host.
func down(ctx context.Context, run *rundir.Run, back error) error {
	if back != nil {
		run.Report(rundir.Event{Stage: "teardown", Message: fmt.Sprintf("giving hosts back: %v", back)})
	}
	if err := infra.Destroy(ctx, run); err != nil {
		return errors.Join(err, back)
	}
	owed, err := run.Ledger.Standing()
	if err != nil {
		return err
	}
	if len(owed) > 0 {
		return errors.Join(fmt.Errorf("%d things that krig did still stand, the first: %s %s on %s; krig down %s tries again",
			len(owed), owed[0].Kind, owed[0].Ref, owed[0].Scope, run.ID), back)
	}
	if err := os.Remove(run.Path(standingFile)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Down removes everything that a run made, whatever state it is in: kept,
// interrupted or killed, also when ctx has ended. It may be called again.
func Down(ctx context.Context, dir string, listen func(rundir.Event)) error {
	run, err := rundir.Open(dir)
	if err != nil {
		return err
	}
	if err := run.Lock(); err != nil {
		return &Refused{[]error{err}}
	}
	run.Listen(listen)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), infra.UndoLimit(run))
	defer cancel()
	return errors.Join(clean(ctx, run), run.Close())
}

// clean removes everything of a run that this process did not begin.
func clean(ctx context.Context, run *rundir.Run) error {
	s, err := ReadStanding(run)
	if err != nil {
		return err
	}
	var back error
	if s != nil {
		back = giveBackCold(ctx, run, s)
	}
	return down(ctx, run, back)
}

// politeLimit bounds what a run that krig no longer works on is asked to give
// back: some of its hosts may be dead.
const politeLimit = 30 * time.Second

// giveBackCold is [giveBack] for a run that another process began.
func giveBackCold(ctx context.Context, run *rundir.Run, s *Standing) error {
	ctx, cancel := context.WithTimeout(ctx, politeLimit)
	defer cancel()
	fleet := remote.NewFleet(run.Dir)
	fleet.Add(s.Hosts...)
	return errors.Join(giveBack(ctx, run, fleet, s), fleet.Close())
}

// leftovers are the lines of a failed removal, one a thing.
func leftovers(err error) ([]string, bool) {
	var l *infra.LeftError
	if !errors.As(err, &l) {
		return nil, false
	}
	return l.Lines(), true
}
