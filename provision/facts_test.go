package provision

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"krig/internal/experiment"
	"krig/internal/rundir"
)

// clock is the time on the captured hosts' clocks, in seconds after 21:36:03.
func clock(seconds float64) time.Time {
	return time.Unix(1796074563, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func testSurvey(t *testing.T, name string) *survey {
	t.Helper()
	s, err := readSurvey([]byte(readCase(t, name)), clock(0.1), clock(0.4))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadSurvey(t *testing.T) {
	s := testSurvey(t, "facts-lab.txt")
	f := s.facts
	if f.OS != "Debian GNU/Linux 12 (bookworm)" || f.Kernel != "6.18.44-fc-v657" || f.CPUModel != "AMD EPYC" || f.Processors != 2 ||
		f.Memory != 2<<30 || f.FreeSpace != 70925516800 || f.Sysstat != "12.6.1" || f.Extra["container"] != "yes" {
		t.Errorf("facts = %+v", f)
	}
	if f.Offset < -0.05 || f.Offset > 0.05 {
		t.Errorf("offset %v, want next to nothing", f.Offset)
	}
	if want := (javaProgram{"/usr/bin/java", "17.0.15", 17, 121490912}); len(s.javas) != 1 || s.javas[0] != want {
		t.Errorf("javas = %v, want %v", s.javas, want)
	}
	if s.listens[9092] != "java (pid 20897)" || s.listens[9093] != "another process" || s.listens[22] != "sshd (pid 1)" || len(s.listens) != 3 {
		t.Errorf("listens = %v", s.listens)
	}
	if d := s.disks["/dev/loop2"]; !d.present || d.holds["LABEL"] != "krig-abc123" {
		t.Errorf("loop2 = %+v", d)
	}
	late, err := readSurvey([]byte(readCase(t, "facts-lab.txt")), clock(-59.9), clock(-59.6))
	if err != nil || late.facts.Offset < 59.9 || late.facts.Offset > 60.1 {
		t.Errorf("a host a minute ahead: offset %v, %v", late.facts.Offset, err)
	}
	if _, err := readSurvey([]byte("now\t1\nos\tx\n"), clock(0), clock(1)); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Errorf("an answer without its end: %v", err)
	}
}

func FuzzReadSurvey(f *testing.F) {
	f.Add(readCase(f, "facts-lab.txt"))
	f.Add(readCase(f, "facts-foreign.txt"))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := readSurvey([]byte(text), clock(0), clock(1))
		if err != nil {
			return
		}
		hosts, _ := testHosts("b")
		judge(layout{"abc123"}, hosts[0], s, testCell("kraft"), 1<<20)
		for p := range s.listens {
			if p < 0 || p > 1<<16 {
				t.Errorf("port %d", p)
			}
		}
	})
}

// Everything that stands against the hosts is in one table, each with a remedy.
func TestJudge(t *testing.T) {
	c := testCell("kraft")
	c.Collect = experiment.Collect{Sar: true}
	l := layout{"abc123"}
	hosts, _ := testHosts("b", "b", "w")
	hosts[0].Disks = []rundir.Disk{{Device: "/dev/loop1"}, {Device: "/dev/loop2"}, {Device: "/dev/loop3"}, {Device: "/dev/nope"}}
	hosts[1].Disks = nil
	var problems []HostProblem
	problems = append(problems, judge(l, hosts[0], testSurvey(t, "facts-lab.txt"), c, 54<<20)...)
	problems = append(problems, judge(l, hosts[1], testSurvey(t, "facts-foreign.txt"), c, 54<<20)...)
	problems = append(problems, judge(l, hosts[2], testSurvey(t, "facts-lab.txt"), c, 54<<20)...)
	err := factsError(problems)
	var facts *FactsError
	if !errors.As(err, &facts) {
		t.Fatalf("judge: %v", err)
	}
	golden(t, "facts-problems.txt", err.Error()+"\n")
	if factsError(nil) != nil {
		t.Error("no problems are an error")
	}
}

func TestBestJava(t *testing.T) {
	s := testSurvey(t, "facts-foreign.txt")
	for _, tt := range []struct {
		need, major int
		ok          bool
	}{{8, 8, true}, {11, 11, true}, {17, 11, false}} {
		if j, ok := s.bestJava(tt.need); j.major != tt.major || ok != tt.ok {
			t.Errorf("bestJava(%d) = %v, %v", tt.need, j, ok)
		}
	}
	if _, ok := new(survey).bestJava(8); ok {
		t.Error("a host without Java has one")
	}
}

// What apt-get says when it fails, and what to do about it.
func TestAptVerdict(t *testing.T) {
	said := parts(t, "64-apt-stderr.txt")
	for i, tt := range []struct {
		verdict int
		holder  string
	}{
		{aptLocked, "process 2044 (unattended-upgr)"}, {aptLocked, "another process"}, {aptLocked, "process 902 (apt-get)"},
		{aptInterrupted, ""}, {aptNoLists, ""},
	} {
		if v, h := aptVerdict(said[i]); v != tt.verdict || h != tt.holder {
			t.Errorf("case %d: %d, %q; want %d, %q", i+1, v, h, tt.verdict, tt.holder)
		}
		if aptErrors(said[i]) == "" {
			t.Errorf("case %d: no error is shown", i+1)
		}
	}
	if v, _ := aptVerdict("E: The repository 'x' is not signed."); v != aptFailed {
		t.Errorf("another error: %d", v)
	}
}

func FuzzAptVerdict(f *testing.F) {
	f.Add("E: Could not get lock /x. It is held by process 2044 (a)")
	f.Fuzz(func(t *testing.T, s string) {
		if v, holder := aptVerdict(s); (v == aptLocked) != (holder != "") {
			t.Errorf("%d, %q", v, holder)
		}
	})
}

func TestReadKeys(t *testing.T) {
	page := `<li><h4><a id="node.id"></a><a id="brokerconfigs_node.id" href="#brokerconfigs_node.id">node.id</a></h4>
<h4><a id="brokerconfigs_log.dirs" href="#x">log.dirs</a></h4><a id="brokerconfigs_node.id"></a>`
	if got, want := readKeys([]byte(page)), []string{"log.dirs", "node.id"}; !slices.Equal(got, want) {
		t.Errorf("readKeys = %q, want %q", got, want)
	}
}

func TestUnknownKeys(t *testing.T) {
	asked := map[string]string{"num.io.threads": "8", "num.io.thread": "8", "unstable.new": "1", "nothing.like.it": "1"}
	want := []string{
		"kafka.broker.nothing.like.it: Kafka 4.4.0 has no such setting",
		"kafka.broker.num.io.thread: Kafka 4.4.0 has no such setting, the nearest is num.io.threads",
	}
	if got := unknown(asked, []string{"num.io.threads", "log.retention.ms"}, "4.4.0"); !slices.Equal(got, want) {
		t.Errorf("unknown = %q\nwant %q", got, want)
	}
	if got := unknown(asked, nil, "4.4.0"); len(got) != 3 {
		t.Errorf("of a Kafka that knows none: %q", got)
	}
}

func FuzzReadKeys(f *testing.F) {
	f.Add([]byte(`<a id="brokerconfigs_node.id">`))
	f.Fuzz(func(t *testing.T, page []byte) {
		if !slices.IsSorted(readKeys(page)) {
			t.Error("not sorted")
		}
	})
}
