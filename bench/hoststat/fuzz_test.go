package hoststat

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func FuzzSar(f *testing.F) {
	seed(f, "sadf")
	f.Fuzz(func(t *testing.T, s string) {
		r, _ := ReadSar(strings.NewReader(s), SarOptions{LinkRate: 1e9})
		sane(t, r)
	})
}

func FuzzIostat(f *testing.F) {
	seed(f, "iostat")
	seed(f, "95")
	f.Fuzz(func(t *testing.T, s string) {
		r, _ := ReadIostat(strings.NewReader(s), IostatOptions{SinceBoot: len(s)%2 == 0, Interval: time.Second})
		sane(t, r)
	})
}

func FuzzPidstat(f *testing.F) {
	seed(f, "pidstat")
	f.Fuzz(func(t *testing.T, s string) {
		r, _ := ReadPidstat(strings.NewReader(s))
		sane(t, r)
	})
}

func FuzzOwn(f *testing.F) {
	f.Add(`{"at":"2024-05-01T10:00:05Z","cpu":1,"processors":2}` + "\n" + `{"at":"2024-05-01T10:00:06Z","cpu":5}`)
	f.Fuzz(func(t *testing.T, s string) {
		r, _ := ReadOwn(strings.NewReader(s), 1)
		sane(t, r)
	})
}

func seed(f *testing.F, word string) {
	names, err := filepath.Glob(filepath.Join("testdata", "*"+word+"*"))
	if err != nil || len(names) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data[:min(len(data), 6000)]))
	}
}

// sane fails unless times ascend and values are numbers that can be.
func sane(t *testing.T, r *Reading) {
	for _, s := range r.Series {
		s.Fill()
		for i := range s.Times {
			if i > 0 && s.Times[i] <= s.Times[i-1] {
				t.Fatalf("%s: times do not ascend: %v", s.Measure, s.Times)
			}
			if v := s.Values[i]; v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0) || *v < 0) {
				t.Fatalf("%s: %v", s.Measure, *v)
			}
		}
	}
}
