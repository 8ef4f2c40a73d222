package rundir

import (
	"os/exec"
	"strings"
	"testing"
)

func TestOwner(t *testing.T) {
	self := Self()
	if !self.Alive() {
		t.Errorf("%v, this process, is not alive", self)
	}
	back, err := ParseOwner(self.String())
	if err != nil || back != self {
		t.Errorf("%q reads back as %v (%v)", self, back, err)
	}
	for what, o := range map[string]Owner{
		"another start":   {self.PID, self.Start + 1, self.Boot},
		"another boot":    {self.PID, self.Start, "b" + self.Boot},
		"no process":      {1 << 30, self.Start, self.Boot},
		"the zero value":  {},
		"a negative pid":  {-1, self.Start, self.Boot},
		"without a boot":  {PID: self.PID, Start: self.Start},
		"without a start": {PID: self.PID, Boot: self.Boot},
	} {
		if o.Alive() {
			t.Errorf("%s: %v counts as alive", what, o)
		}
	}
}

// A process that has ended and was not collected is not alive.
func TestOwnerOfZombie(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o, err := OwnerOf(cmd.Process.Pid)
	if err != nil || !o.Alive() {
		t.Fatalf("%v is not alive (%v)", o, err)
	}
	in.Close()
	for o.Alive() { // the test's own limit bounds it
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if o.Alive() {
		t.Errorf("%v has ended and counts as alive", o)
	}
	if _, err := OwnerOf(1 << 30); err == nil {
		t.Error("a process that is not there has an owner")
	}
}

func TestParseOwnerErrors(t *testing.T) {
	for in, want := range map[string]string{
		"":           "is not pid:start:boot id",
		"12":         "is not pid:start:boot id",
		"12:34":      "is not pid:start:boot id",
		"12:34:":     "is not pid:start:boot id",
		"12:34:a:b":  "is not pid:start:boot id",
		"x:34:boot":  "does not begin with the number of a process",
		"0:34:boot":  "does not begin with the number of a process",
		"12:x:boot":  "has no start time",
		"12:-4:boot": "has no start time",
	} {
		if _, err := ParseOwner(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}

func TestParseStat(t *testing.T) {
	const rest = " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 2"
	for line, want := range map[string]uint64{
		"12 (cat)" + rest:            98765,
		"12 (a) b (c d)) (x)" + rest: 98765,
	} {
		start, state, err := parseStat(line)
		if err != nil || start != want || state != 'S' {
			t.Errorf("%q: %d %c %v", line, start, state, err)
		}
	}
	for _, line := range []string{"", "12 cat S", "12 (cat) S 1 2", "12 (cat) SS 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765"} {
		if _, _, err := parseStat(line); err == nil {
			t.Errorf("%q is read", line)
		}
	}
}

func FuzzParseOwner(f *testing.F) {
	f.Add("12:34:092276c5-0ca4-47b0-abf4-245865a65f0d")
	f.Add("::")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseOwner(s)
		if err != nil {
			return
		}
		if back, err := ParseOwner(o.String()); err != nil || back != o {
			t.Errorf("%q: %v reads back as %v (%v)", s, o, back, err)
		}
	})
}
