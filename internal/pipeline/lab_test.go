package pipeline_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"krig/infra"
	"krig/internal/pipeline"
	"krig/internal/result"
	"krig/internal/rundir"
)

// lab is one test's place to run experiments in: a scope of its own, run
// directories of its own, and the programs built for it.
type lab struct {
	t    *testing.T
	runs string
}

// TestMain runs the flow instead of the tests where a test started this binary
// to have a krig that it can kill.
func TestMain(m *testing.M) {
	if file := os.Getenv("KRIG_TEST_RUN"); file != "" {
		_, err := pipeline.Run(context.Background(), file, pipeline.Options{RunsDir: os.Getenv("KRIG_TEST_RUNS")}, nil)
		if err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// newLab skips where no lab can be had, and fails instead in CI. At the end of
// the test nothing of its scope may stand.
func newLab(t *testing.T) *lab {
	t.Helper()
	if lacks := infra.Check(t.Context(), nil); len(lacks) > 0 {
		if os.Getenv("CI") != "" {
			t.Fatalf("no lab on this machine: %v", lacks)
		}
		t.Skipf("no lab on this machine: %v", lacks)
	}
	scope := strings.ToLower(strings.Map(letters, t.Name())) + time.Now().Format("150405")
	t.Setenv("KRIG_SCOPE", scope)
	t.Setenv("KRIG_AGENT_DIR", agents(t))
	l := &lab{t: t, runs: t.TempDir()}
	t.Cleanup(func() { l.nothingStands(context.Background()) })
	return l
}

func letters(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return -1
}

// agents builds krig-agent once for all tests of this process.
var agents = func() func(*testing.T) string {
	var once sync.Once
	var dir string
	var err error
	return func(t *testing.T) string {
		once.Do(func() {
			if dir, err = os.MkdirTemp("", "krig-agents-"); err != nil {
				return
			}
			for _, arch := range []string{"amd64", "arm64"} {
				cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "krig-agent-linux-"+arch), "krig/cmd/krig-agent")
				cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
				if out, e := cmd.CombinedOutput(); e != nil {
					err = e
					t.Logf("%s", out)
					return
				}
			}
		})
		if err != nil {
			t.Fatalf("building krig-agent: %v", err)
		}
		return dir
	}
}()

// nothingStands asserts that the machine shows nothing of this test, and
// removes what it does show.
func (l *lab) nothingStands(ctx context.Context) {
	l.t.Helper()
	found, err := infra.Find(ctx, infra.Label{Scope: os.Getenv("KRIG_SCOPE")})
	if err != nil {
		l.t.Errorf("listing what stands: %v", err)
	}
	if len(found) > 0 {
		l.t.Errorf("still standing: %+v", found)
		if err := infra.Remove(ctx, found); err != nil {
			l.t.Errorf("removing it: %v", err)
		}
	}
}

// write puts an experiment into a file.
func (l *lab) write(text string) string {
	l.t.Helper()
	path := filepath.Join(l.t.TempDir(), "experiment.yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// run runs an experiment; fault, when it is not nil, is called once, when load first flows.
func (l *lab) run(text string, fault func(short string)) (pipeline.Outcome, error) {
	l.t.Helper()
	var once sync.Once
	var wg sync.WaitGroup
	defer wg.Wait()
	return pipeline.Run(l.t.Context(), l.write(text), pipeline.Options{RunsDir: l.runs, Version: "test"}, func(e rundir.Event) {
		l.t.Logf("%s %s %s %s", e.At.Format("15:04:05"), e.Stage, e.Host, e.Message)
		if fault == nil || e.Throughput <= 0 {
			return
		}
		once.Do(func() {
			short := l.short()
			wg.Go(func() { fault(short) })
		})
	})
}

// short is the short id of the one run below the test's run directories.
func (l *lab) short() string {
	l.t.Helper()
	dirs, err := os.ReadDir(l.runs)
	if err != nil || len(dirs) != 1 {
		l.t.Fatalf("want one run directory, have %v (%v)", dirs, err)
	}
	name := dirs[0].Name()
	return name[strings.LastIndex(name, "-")+1:]
}

// repeats are all results of a run directory, by cell and repeat.
func repeats(t *testing.T, run *rundir.Run) []result.Repeat {
	t.Helper()
	files, err := filepath.Glob(run.Path("cells", "*", "*", "result.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []result.Repeat
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var r result.Repeat
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		out = append(out, r)
	}
	return out
}
