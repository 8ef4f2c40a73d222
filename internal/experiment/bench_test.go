package experiment_test

import (
	"os"
	"path/filepath"
	"testing"

	"krig/internal/experiment"
)

// BenchmarkLoad reads, expands and orders a thousand cells.
func BenchmarkLoad(b *testing.B) {
	path := filepath.Join(b.TempDir(), "exp.yaml")
	text := minimal + "matrix:\n  brokers.count: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n  brokers.memory: [2GiB, 3GiB, 4GiB, 5GiB, 6GiB, 7GiB, 8GiB, 9GiB, 10GiB, 11GiB]\n  bench.topics: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := experiment.Load(path); err != nil {
			b.Fatal(err)
		}
	}
}
