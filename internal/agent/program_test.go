package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"krig/internal/agent"
)

func TestProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KRIG_AGENT_DIR", dir)
	want := filepath.Join(dir, "krig-agent-linux-arm64")
	if err := os.WriteFile(want, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := agent.Program("arm64"); err != nil || got != want {
		t.Errorf("found %q, %v, want %q", got, err, want)
	}
	missing := filepath.Join(dir, "krig-agent-linux-amd64") + " is missing"
	if _, err := agent.Program("amd64"); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("%v, want %s", err, missing)
	}
	t.Setenv("KRIG_AGENT_DIR", "")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(self), "krig-agent-linux-amd64") + " is missing"
	if _, err := agent.Program("amd64"); err == nil || !strings.Contains(err.Error(), beside) {
		t.Errorf("%v, want %s", err, beside)
	}
}
