package provision

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"krig/internal/experiment"
	"krig/internal/remote"
	"krig/internal/rundir"
)

//go:embed home.sh
var homeScript string

// prepareLimit bounds the preparation of one host.
const prepareLimit = 20 * time.Minute

// prepareHosts makes hosts ready that are not yet in have.
func prepareHosts(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, c *experiment.Cell, have *rundir.Prepared) (*rundir.Prepared, error) {
	done := map[string]rundir.PreparedHost{}
	if have != nil {
		for _, p := range have.Hosts {
			done[p.Name] = p
		}
	}
	var todo []rundir.Host
	for _, h := range hosts {
		if _, ok := done[h.Name]; !ok {
			todo = append(todo, h)
		}
	}
	if len(todo) > 0 {
		made, err := prepareNew(ctx, run, f, todo, c)
		if err != nil {
			return nil, err
		}
		for _, p := range made {
			done[p.Name] = p
		}
	}
	out := &rundir.Prepared{}
	for _, h := range hosts {
		out.Hosts = append(out.Hosts, done[h.Name])
	}
	return out, nil
}

// prepareNew looks at everything first, and changes something only where
// nothing stands against it.
func prepareNew(ctx context.Context, run *rundir.Run, f *remote.Fleet, hosts []rundir.Host, c *experiment.Cell) ([]rundir.PreparedHost, error) {
	agents, err := findAgents(hosts)
	if err != nil {
		return nil, err
	}
	d, err := resolve(ctx, run, c.Kafka)
	if err != nil {
		return nil, err
	}
	if err := d.checkKnown(ctx, c.Kafka.Broker, nil, "", ""); err != nil && !errors.Is(err, errNoJava) {
		return nil, err
	}
	size, err := sizeOf(d.libs)
	if err != nil {
		return nil, err
	}
	run.Report(rundir.Event{Stage: "prepare", Message: fmt.Sprintf("asking %d hosts for their facts", len(hosts))})
	l := layoutOf(run)
	surveys, problems := surveyAll(ctx, f, l, hosts)
	for _, h := range hosts {
		if s := surveys[h.Name]; s != nil {
			problems = append(problems, judge(l, h, s, c, size)...)
		}
	}
	if err := factsError(problems); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	made := make([]rundir.PreparedHost, 0, len(hosts))
	err = f.Each(ctx, namesOf(hosts), func(ctx context.Context, name string, conn *remote.Conn) error {
		h := hosts[slices.IndexFunc(hosts, func(h rundir.Host) bool { return h.Name == name })]
		w := &work{run: run, conn: conn, host: h, survey: surveys[name], cell: c, dist: d, agent: agents[h.Arch]}
		p, err := w.do(ctx)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		made = append(made, *p)
		return nil
	})
	return made, err
}

// work is the preparation of one host.
type work struct {
	run    *rundir.Run
	conn   *remote.Conn
	host   rundir.Host
	survey *survey
	cell   *experiment.Cell
	dist   *distribution
	agent  string // krig-agent on this machine
}

// do prepares the host: what does not need something else goes on side by side.
func (w *work) do(ctx context.Context) (*rundir.PreparedHost, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareLimit)
	defer cancel()
	l := layoutOf(w.run)
	if err := w.home(ctx, l); err != nil {
		return nil, err
	}
	out := &rundir.PreparedHost{Name: w.host.Name, Facts: w.survey.facts, Dir: l.dir(), Agent: l.agent(), Kafka: l.kafka()}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.conn.Put(gctx, w.agent, l.agent()) })
	g.Go(func() error { return putKafka(gctx, w.conn, l, w.dist) })
	g.Go(func() (err error) {
		out.DataDir, err = makeDisk(gctx, w.run, w.conn, w.host, w.survey)
		return err
	})
	g.Go(func() (err error) {
		out.Install, err = install(gctx, w.run, w.conn, w.host.Name, missing(w.survey, w.cell))
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := w.java(ctx, out); err != nil {
		return nil, err
	}
	w.run.Report(rundir.Event{Stage: "prepare", Host: w.host.Name, Message: "ready for Kafka"})
	return out, nil
}

// home makes krig's own directory, which belongs to the login.
func (w *work) home(ctx context.Context, l layout) error {
	entry := rundir.Entry{Kind: kindDirectory, Scope: w.host.Name, Ref: l.dir()}
	err := w.run.Ledger.Do(entry, func() error {
		_, err := runScript(ctx, w.conn, homeScript, l.dir(), w.host.SSH.User)
		return err
	})
	if err != nil {
		return fmt.Errorf("making %s: %w", l.dir(), err)
	}
	return nil
}

// java fills in the host's Java, looked for again where one was installed.
func (w *work) java(ctx context.Context, out *rundir.PreparedHost) error {
	s := w.survey
	if len(out.Install) > 0 {
		var err error
		if s, err = askFacts(ctx, w.conn, out.Dir); err != nil {
			return err
		}
	}
	if left := missing(s, w.cell); len(left) > 0 {
		return fmt.Errorf("%s although %s is installed: %s", left[0].what, left[0].pkg, left[0].remedy)
	}
	v, _ := parseVersion(w.cell.Kafka.Version) // Check refused what cannot be parsed
	j, _ := s.bestJava(v.java())               // there, or it would be missing
	out.Java = j.path
	out.Facts.Java, out.Facts.JavaMajor = j.full, j.major
	out.Facts.JVMStart = j.start.Seconds()
	out.Facts.Sysstat = s.facts.Sysstat
	return nil
}

// putKafka brings a distribution to a host and makes it the one in use.
func putKafka(ctx context.Context, c *remote.Conn, l layout, d *distribution) error {
	if err := c.Put(ctx, d.libs, l.dist(d.id)); err != nil {
		return err
	}
	return c.Exec(ctx, remote.Cmd{Argv: []string{"ln", "-sfn", l.dist(d.id), l.kafka()}})
}

// findAgents finds krig-agent for every architecture among the hosts: beside
// the running krig, or in the directory that KRIG_AGENT_DIR names.
func findAgents(hosts []rundir.Host) (map[string]string, error) {
	dir := os.Getenv("KRIG_AGENT_DIR")
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		dir = filepath.Dir(self)
	}
	out := map[string]string{}
	for _, h := range hosts {
		file := filepath.Join(dir, "krig-agent-linux-"+h.Arch)
		_, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is missing, the program that krig runs on hosts: make it with `make build`", file)
		}
		if err != nil {
			return nil, err
		}
		out[h.Arch] = file
	}
	return out, nil
}

func sizeOf(dir string) (int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

func namesOf(hosts []rundir.Host) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = h.Name
	}
	return out
}
