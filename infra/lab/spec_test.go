package lab

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

func TestSpecValid(t *testing.T) {
	for want, s := range map[string]Spec{
		"":                                 {Name: "b1", CPUs: 0.5, Memory: 1, LinkRate: 1, Disk: Disk{Size: 1, Write: 1, Read: 1, IOPS: 1}},
		`a host cannot be called ""`:       {},
		`a host cannot be called "1b"`:     {Name: "1b"},
		`a host cannot be called "B1"`:     {Name: "B1"},
		`a host cannot be called "b1.x"`:   {Name: "b1.x"},
		"host b1: memory is -1":            {Name: "b1", Memory: -1},
		"host b1: link_rate is -2":         {Name: "b1", LinkRate: -2},
		"host b1: disk.iops is -3":         {Name: "b1", Disk: Disk{IOPS: -3}},
		"host b1: cpus is -0.5":            {Name: "b1", CPUs: -0.5},
		`a host cannot be called "` + "aa": {Name: strings.Repeat("a", 32)},
	} {
		err := s.Valid()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// A host that may be made names files of its own alone.
func FuzzSpec(f *testing.F) {
	f.Add(`{"name": "b1", "disk": {"size": 8388608}}`)
	f.Add(`{"name": "../b1", "cpus": -1}`)
	f.Fuzz(func(t *testing.T, text string) {
		var s Spec
		if json.Unmarshal([]byte(text), &s) != nil || s.Valid() != nil {
			return
		}
		if filepath.Base(recordOf(s.Name)) != s.Name+".json" || filepath.Dir(lockOf(s.Name)) != "hosts" || strings.ContainsAny(s.Name, "/. ,:\n") {
			t.Errorf("%q names %s and %s", text, recordOf(s.Name), lockOf(s.Name))
		}
	})
}
