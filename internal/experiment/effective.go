package experiment

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Effective is the file with overrides and defaults written out, paths made
// absolute and comments left out. It gives the same plan. A default that hangs
// on a key that the matrix varies is not in it, since it differs between cells.
func (f *File) Effective() ([]byte, error) {
	root := complete(f.root, f.isVaried)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(bare(root, f.absolute())); err != nil {
		return nil, fmt.Errorf("writing the effective experiment: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("writing the effective experiment: %w", err)
	}
	return b.Bytes(), nil
}

// absolute gives the scalars that are relative paths, in keys and in the
// matrix, their absolute form.
func (f *File) absolute() map[*yaml.Node]string {
	out := make(map[*yaml.Node]string)
	add := func(n *yaml.Node) {
		if n != nil && n.Kind == yaml.ScalarNode && !isNull(n) {
			out[n] = f.beside(n.Value)
		}
	}
	for _, name := range f.names.rigs {
		modulePaths(child(child(f.root, "rigs"), name), add)
	}
	for _, a := range f.axes {
		for i, t := range a.targets {
			for _, row := range a.rows {
				if isModulePath(t.steps) {
					add(row[i])
				}
			}
		}
	}
	for _, key := range []string{"archive", "directory"} {
		add(child(child(child(f.root, "kafka"), "source"), key))
		for _, a := range f.axes {
			for i, t := range a.targets {
				for _, row := range a.rows {
					if t.same() == "kafka.source."+key {
						add(row[i])
					}
				}
			}
		}
	}
	return out
}

// isVaried tells whether the matrix varies a key, or one below it. Paths are
// those of [complete].
func (f *File) isVaried(path string) bool {
	for _, a := range f.axes {
		for _, t := range a.targets {
			for bench := range max(len(f.names.benches), 1) {
				full := f.display(t.steps, bench)
				if t.axis == "" && (t.bench < 0 || t.bench == bench) && (full == path || strings.HasPrefix(full, path+".")) {
					return true
				}
			}
		}
	}
	return false
}

// display is the path of a key as errors spell it: with the bench's name where there is a list.
func (f *File) display(steps []string, bench int) string {
	if !f.names.listed || len(steps) < 1 || steps[0] != "bench" {
		return strings.Join(steps, ".")
	}
	list := child(f.root, "bench")
	if bench >= len(list.Content) {
		return strings.Join(steps, ".")
	}
	head := itemKey("bench", list.Content[bench], bench)
	return strings.Join(append([]string{head}, steps[1:]...), ".")
}

// Inputs lists the files of this machine that the experiment names, absolute
// and sorted: Kafka's archives. Directories are not among them.
func (f *File) Inputs() []string {
	var out []string
	for _, c := range f.plan.Cells {
		if a := c.Kafka.Source.Archive; a != "" && !isURL(a) {
			out = append(out, a)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Locate says where in the file the key of a problem stands: for one that the
// matrix varies, the value of the problem's cell, or without a cell the axis.
// A key that is not written gives the place of what would hold it.
func (f *File) Locate(p Problem) *Error {
	root, pt := f.root, point{}
	if got, ok := f.points[p.Cell]; ok {
		pt = got
		root = pt.apply(root)
	} else if len(f.names.rigs) > 0 {
		pt.rig = f.names.rigs[0]
	}
	steps := f.steps(p.Path, pt)
	v, _, _ := find(root, steps, pt.bench)
	for _, a := range f.axes {
		if p.Cell == "" && slices.ContainsFunc(a.targets, func(t target) bool { return slices.Equal(t.steps, steps) }) {
			v = a.key
		}
	}
	e := f.origin.refuse(v, f.display(steps, pt.bench), refusal{p.Reason, p.Expected, ""})
	if len(f.points) > 1 {
		e.Cell = p.Cell
	}
	return e
}

// steps splits a problem's path; it may leave out the rig, whose name the
// point knows.
func (f *File) steps(path string, p point) []string {
	ns := f.names
	if p.rig != "" {
		ns.rigs = []string{p.rig}
	}
	t, _ := ns.resolve(path)
	if got := strings.Join(t.steps, "."); got == path || strings.HasSuffix(got, "."+path) {
		return t.steps
	}
	segments := strings.Split(path, ".")
	if ns.inRig(segments[0]) && p.rig != "" {
		return append([]string{"rigs", p.rig}, segments...)
	}
	return segments
}

// Check asks the stages what they cannot do, cell by cell, and joins what they
// answer with what was wrong with the file anyway, each problem once and in
// the file's order. Nil means that all can be done.
func (f *File) Check(stages ...func(*Cell) []Problem) error {
	var answers findings
	for i, stage := range stages {
		said := make(map[string]bool)
		for _, c := range f.plan.Cells {
			if c.BrokerCount() < 1 || c.WorkerCount() < 1 {
				continue // refused already, and no cell that a stage could know
			}
			for _, p := range stage(c) {
				p.Cell = c.ID
				f.report(p, &answers, "stage "+strconv.Itoa(i), said)
			}
		}
	}
	return joined(f.found, f.problems, answers)
}

// report adds a problem, unless its key is refused already, or the same check
// has said so of the same place for another cell.
func (f *File) report(p Problem, to *findings, check string, said map[string]bool) {
	e := f.Locate(p)
	if f.found.poisons(e.Key) {
		return
	}
	where := fmt.Sprint(check, " ", e.File, ":", e.Line, ":", e.Column, ":", e.Key)
	if !said[where] {
		said[where] = true
		to.add(e)
	}
}

// missing tells whether a file or directory that the experiment names is not there.
func missing(path string, directory bool) bool {
	info, err := os.Stat(path)
	return err != nil || info.IsDir() != directory
}
