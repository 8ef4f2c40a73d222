package experiment

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A File is an experiment that was read and checked.
type File struct {
	Path       string      // as given to Load
	Experiment *Experiment // overrides and defaults applied, matrix not

	origin origin
	root   *yaml.Node // overrides applied, defaults not
	names  names
	axes   []axis           // of all blocks
	points map[string]point // by the cell's ID
	plan   *Plan

	found    findings        // what could not be read
	problems findings        // what was read and cannot be
	said     map[string]bool // by check and place
}

// Load reads and checks the experiment at path. Each of set is an override
// "path=value" of one scalar, null for none.
//
// Everything wrong is in the error at once, as joined [*Error]; a file that
// cannot be read at all gives the plain error. Where cells could be made all
// the same, the File comes beside the error, good for nothing but [File.Check].
func Load(path string, set ...string) (*File, error) {
	data, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("reading the experiment: %w", err)
	}
	return load(path, data, set)
}

// readBounded reads little more than an experiment may hold: a path may name
// a device without an end.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, sizeMax+1))
}

func load(path string, data []byte, set []string) (*File, error) {
	f := &File{Path: path, origin: origin{file: path, overrides: set}, points: make(map[string]point), said: make(map[string]bool)}
	root, broken := f.origin.parse(data)
	if broken != nil {
		return nil, broken
	}
	if !f.origin.refuseYAML(root, &f.found, 0) {
		return nil, joined(f.found)
	}
	f.names, f.root = namesIn(root), root
	for i := range set {
		f.override(i)
	}
	f.names = namesIn(f.root)
	if err := f.chooseSeed(); err != nil {
		return nil, err
	}
	r := reader{f.origin, &f.found}
	f.Experiment = r.experiment(complete(f.root, nil))
	f.checkFile()
	if err := f.expand(); err != nil {
		return nil, err
	}
	if len(f.plan.Cells) == 0 {
		return nil, joined(f.found, f.problems)
	}
	if f.refuseVisits() {
		return nil, joined(f.found, f.problems)
	}
	f.plan.Visits = visits(f.plan.Cells, f.Experiment.Order, f.Experiment.Repeat, f.Experiment.Seed)
	return f, joined(f.found, f.problems)
}

// override applies the i-th of the overrides.
func (f *File) override(i int) {
	refuse := func(key string, why refusal) {
		f.found.add(f.origin.refuse(&yaml.Node{Line: -i - 1}, key, why))
	}
	path, text, ok := strings.Cut(f.origin.overrides[i], "=")
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		refuse("", refusal{reason: "is not an override", expected: "path=value, such as --set bench.record_size=1KiB"})
		return
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		refuse(path, refusal{reason: "has characters that are no text", expected: "one line of text"})
		return
	}
	if path == "matrix" && text == "null" {
		f.root = with(f.root, "matrix", nil)
		return
	}
	t, why := f.names.resolve(path)
	if why == nil && t.axis != "" {
		why = &refusal{reason: "is no key", expected: "the path of one scalar"}
	}
	if why != nil {
		refuse(path, *why)
		return
	}
	var v *yaml.Node
	if text != "null" {
		v = &yaml.Node{Kind: yaml.ScalarNode, Value: text, Line: -i - 1, Column: 1}
		if text == "" {
			v.Tag = "!!str"
		}
	}
	for bench := range max(len(f.names.benches), 1) {
		if t.bench < 0 || t.bench == bench {
			f.root = put(f.root, t.steps, bench, v)
		}
	}
}

// chooseSeed writes a seed into a file that has none, so that the effective
// file gives the same plan.
func (f *File) chooseSeed() error {
	if child(f.root, "seed") != nil {
		return nil
	}
	var b [4]byte // short enough to read aloud, and exact in any JSON reader
	if _, err := rand.Read(b[:]); err != nil {
		return fmt.Errorf("choosing a seed: %w", err)
	}
	f.root = with(f.root, "seed", text(strconv.FormatUint(uint64(binary.BigEndian.Uint32(b[:])), 10), f.root))
	return nil
}

// expand makes the cells.
func (f *File) expand() error {
	m := matrixReader{f.origin, f.names, &f.found}
	node := child(f.root, "matrix")
	blocks, written := m.read(node)
	f.Experiment.Matrix = written
	for _, b := range blocks {
		for _, a := range b {
			f.axes = append(f.axes, a)
			f.refuseOverridden(a)
		}
	}
	f.refuseIdleModules()
	e := f.Experiment
	f.plan = &Plan{Name: e.Name, Seed: e.Seed, Order: e.Order}
	names := newCellNames(blocks, m)
	seen := make(map[string]bool)
	for _, p := range m.points(node, blocks) {
		c, key, err := f.cell(p)
		if err != nil {
			return err
		}
		if c == nil || seen[key] {
			continue
		}
		seen[key] = true
		c.ID = names.id(c.Axes)
		f.points[c.ID] = p
		f.plan.Cells = append(f.plan.Cells, c)
		f.checkCell(c)
	}
	return nil
}

// refuseOverridden refuses an override that the matrix would undo.
func (f *File) refuseOverridden(a axis) {
	for i, t := range a.targets {
		if t.axis != "" {
			continue
		}
		v, _, whole := find(f.root, t.steps, max(t.bench, 0))
		if whole && v.Line < 0 {
			f.found.add(f.origin.refuse(v, a.paths[i], refusal{reason: "is an axis of the matrix, which would override this", expected: "another key, or also --set matrix=null for no matrix"}))
		}
	}
}

// cell reads the file at one point. The key is equal for equal cells. A nil
// cell is one whose rig or bench could not be read.
func (f *File) cell(p point) (*Cell, string, error) {
	r := reader{f.origin, &f.found}
	e := r.experiment(complete(p.apply(f.root), nil))
	rig, ok := e.Rigs[p.rig]
	if !ok || p.bench >= len(e.Bench) {
		return nil, "", nil
	}
	rig, err := f.rig(rig)
	if err != nil {
		return nil, "", fmt.Errorf("rig %s: %w", p.rig, err)
	}
	c := &Cell{Axes: p.axes(), RigName: p.rig, Rig: rig, Kafka: e.Kafka, Bench: e.Bench[p.bench], Collect: e.Collect, Limit: e.Limit}
	c.Kafka.Source = f.located(c.Kafka.Source)
	var same bytes.Buffer
	alike := *c
	alike.Axes = nil
	if err := json.NewEncoder(&same).Encode(alike); err != nil {
		return nil, "", fmt.Errorf("comparing cells: %w", err)
	}
	return c, same.String(), nil
}

// rig is a rig as a cell has it: what is another provider's is left out.
func (f *File) rig(r Rig) (Rig, error) {
	if r.Provider == "module" {
		m, err := f.locatedModule(r.Module)
		r.Module = m
		return r, err
	}
	r.Module = Module{}
	r.Brokers, r.Controllers, r.Workers = r.Brokers.resolved(), r.Controllers.resolved(), r.Workers.resolved()
	return r, nil
}

// located makes the paths of a source absolute: they are relative to the file. URLs stay.
func (f *File) located(s Source) Source {
	s.Directory, s.Archive = f.beside(s.Directory), f.beside(s.Archive)
	return s
}

func (f *File) beside(path string) string {
	if path == "" || filepath.IsAbs(path) || isURL(path) {
		return path
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if abs, err := filepath.Abs(filepath.Join(filepath.Dir(f.origin.file), path)); err == nil {
		return abs
	}
	return path
}

func isURL(s string) bool { return strings.Contains(s, "://") }

// Plan is everything that a run of this file does, in order. Cells are in the
// matrix's order, visits in that of measuring.
func (f *File) Plan() (*Plan, error) {
	if err := joined(f.found, f.problems); err != nil {
		return nil, err
	}
	return f.plan, nil
}
