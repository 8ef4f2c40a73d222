package experiment

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// shuffleStream tells this use of the seed from any other.
const shuffleStream = 0x6b726967

// visitsMax bounds the repeats of all cells together.
const visitsMax = 100_000

// refuseVisits tells, and reports, that there are more repeats than any run can make.
func (f *File) refuseVisits() bool {
	cells, repeat := len(f.plan.Cells), f.Experiment.Repeat
	if repeat <= visitsMax/cells {
		return false
	}
	at := child(f.root, "repeat")
	if at == nil {
		at = f.root
	}
	f.problems.add(f.origin.refuse(at, "repeat", refusal{
		reason:   fmt.Sprintf("%d for each of %d cells are too many repeats", repeat, cells),
		expected: fmt.Sprintf("at most %d in all", visitsMax)}))
	return true
}

// visits puts the repeats of all cells in order. The same seed gives the same order.
func visits(cells []*Cell, order string, repeat int, seed uint64) []Visit {
	random := rand.New(rand.NewPCG(seed, shuffleStream))
	if order == "rounds" {
		return rounds(cells, repeat, random)
	}
	return blocked(cells, repeat, random)
}

// rounds makes each repeat one pass over all cells, shuffled.
func rounds(cells []*Cell, repeat int, random *rand.Rand) []Visit {
	var out []Visit
	for r := 1; r <= repeat; r++ {
		for _, i := range random.Perm(len(cells)) {
			out = append(out, Visit{Cell: i, Repeat: r})
		}
	}
	return out
}

// blocked visits each state of hosts and cluster once. States follow one
// another in the matrix's order, the dearest to change slowest; within equal
// ones the number of hosts only grows. The repeats of cells that share a
// cluster are shuffled among one another.
func blocked(cells []*Cell, repeat int, random *rand.Rand) []Visit {
	ranks := rank(cells)
	order := make([]int, len(cells))
	for i := range order {
		order[i] = i
	}
	compare := func(i, j int) int {
		return cmp.Or(slices.Compare(ranks[i], ranks[j]), compareCounts(cells[i], cells[j]))
	}
	slices.SortStableFunc(order, compare)
	var out []Visit
	for start := 0; start < len(order); {
		end := start + 1
		for end < len(order) && compare(order[start], order[end]) == 0 {
			end++
		}
		var same []Visit
		for _, i := range order[start:end] {
			for r := 1; r <= repeat; r++ {
				same = append(same, Visit{Cell: i, Repeat: r})
			}
		}
		random.Shuffle(len(same), func(i, j int) { same[i], same[j] = same[j], same[i] })
		out = append(out, inTurn(same)...)
		start = end
	}
	return out
}

// inTurn renumbers shuffled repeats so that each cell's come in their order:
// the first that is measured is its repeat 1.
func inTurn(visits []Visit) []Visit {
	next := make(map[int]int)
	for i := range visits {
		next[visits[i].Cell]++
		visits[i].Repeat = next[visits[i].Cell]
	}
	return visits
}

// rank gives each cell the positions, in order of first appearance, of its
// rig, its hosts' state, their preparation and its cluster.
func rank(cells []*Cell) [][]int {
	seen := make(map[string]int)
	position := func(s string) int {
		if _, ok := seen[s]; !ok {
			seen[s] = len(seen)
		}
		return seen[s]
	}
	out := make([][]int, len(cells))
	for i, c := range cells {
		settings := c.settings()
		out[i] = []int{position("rig " + c.RigName)}
		for _, cost := range []Cost{Infra, Prepare, Cluster} {
			out[i] = append(out[i], position(cost.String()+" "+state(settings, cost)))
		}
	}
	return out
}
