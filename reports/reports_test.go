package reports

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"krig/internal/result"
	"krig/internal/rundir"
)

var update = flag.Bool("update", false, "write the golden files anew")

// written writes a variant's run directory and its reports.
func written(t testing.TB, s *synthetic) (*rundir.Run, *result.Run) {
	t.Helper()
	run := s.write(t)
	r, err := Write(run)
	if err != nil {
		t.Fatalf("Write: %v", err)
	}
	return run, r
}

// golden compares with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", path, got)
	}
}

func TestText(t *testing.T) {
	for name, make := range variants() {
		t.Run(name, func(t *testing.T) {
			run, r := written(t, make())
			var out bytes.Buffer
			if err := Text(&out, run, r); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", out.Bytes())
		})
	}
}
