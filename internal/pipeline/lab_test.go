package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"krig/infra/lab/labtest"
	"krig/internal/pipeline"
	"krig/internal/result"
	"krig/internal/rundir"
)

// lab is one test's place to run experiments in: a scope of its own, run
// directories of its own, and the programs built for it.
type lab struct {
	t    testing.TB
	runs string
}

// TestMain runs the flow instead of the tests where a test started this binary
// to have a krig that it can kill.
func TestMain(m *testing.M) {
	if file := os.Getenv("KRIG_TEST_RUN"); file != "" {
		say := func(e rundir.Event) { fmt.Println(e.Stage, e.Message) }
		_, err := pipeline.Run(context.Background(), file, pipeline.Options{RunsDir: os.Getenv("KRIG_TEST_RUNS")}, say)
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
	labtest.Need(t)
	labtest.Scope(t)
	t.Setenv("KRIG_AGENT_DIR", agents(t))
	return &lab{t: t, runs: t.TempDir()}
}

// agents builds krig-agent once for all tests of this process.
var agents = func() func(testing.TB) string {
	var once sync.Once
	var dir string
	var err error
	return func(t testing.TB) string {
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

// child is a krig of its own process that runs an experiment.
func (l *lab) child(text string) *exec.Cmd {
	l.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "KRIG_TEST_RUN="+l.write(text), "KRIG_TEST_RUNS="+l.runs)
	return cmd
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

// run runs an experiment; fault, when it is not nil, is called once, when the
// first counted load flows.
func (l *lab) run(text string, fault func(short string)) (pipeline.Outcome, error) {
	l.t.Helper()
	return l.runContext(l.t.Context(), text, fault)
}

func (l *lab) runContext(ctx context.Context, text string, fault func(short string)) (pipeline.Outcome, error) {
	l.t.Helper()
	var once sync.Once
	var wg sync.WaitGroup
	defer wg.Wait()
	var loading atomic.Bool
	return pipeline.Run(ctx, l.write(text), pipeline.Options{RunsDir: l.runs, Version: "test"}, func(e rundir.Event) {
		if e.Message != "" {
			l.t.Logf("%s %s %s %s", e.At.Format("15:04:05"), e.Stage, e.Host, e.Message)
		}
		if strings.HasPrefix(e.Message, "loading") {
			loading.Store(true)
		}
		if fault != nil && loading.Load() && e.Throughput > 0 {
			once.Do(func() {
				short := l.short()
				wg.Go(func() { fault(short) })
			})
		}
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

// machine is what a run could have left on this machine, as text: containers,
// networks, mounts, throttle rules, loop devices, links, processes and files.
func machine(t *testing.T, short string) string {
	return sh(t, strings.ReplaceAll(`podman ps -a --format '{{.Names}}' | grep krig-SHORT
podman network ls --format '{{.Name}}' | grep krig-SHORT
cut -d' ' -f5 /proc/self/mountinfo | grep krig-SHORT
losetup -nO BACK-FILE | grep krig-SHORT
ls "${KRIG_LAB_DIR:-$HOME/.cache/krig/lab}" 2>/dev/null | grep krig-SHORT
ps -eo args | grep krig-SHORT | grep -v grep
for rule in /sys/fs/cgroup/blkio/blkio.throttle.*_device; do
  while read -r device limit; do losetup -nO MAJ:MIN | tr -d ' ' | grep -qx "$device" || echo "$rule $device $limit"; done <"$rule"
done 2>/dev/null
true`, "SHORT", short))
}

// sh runs a script of this test and returns what it printed.
func sh(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "sh", "-c", script).CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Logf("%s: %v", script, err)
	}
	return string(out)
}
