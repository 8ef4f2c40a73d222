package cli_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// deps are all packages that a package is built from, its own tests left out.
func deps(t *testing.T, pattern string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", `{{.ImportPath}}: {{join .Deps " "}}`, pattern)
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", pattern, err, stderr.String())
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		name, list, _ := strings.Cut(strings.TrimSpace(line), ": ")
		all[name] = strings.Fields(list)
	}
	if len(all) == 0 {
		t.Fatalf("go list %s names no package", pattern)
	}
	return all
}

func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// The stages hand plain values on; the pipeline alone knows them all.
func TestStagesNeverImportEachOther(t *testing.T) {
	stages := []string{"krig/infra", "krig/provision", "krig/bench", "krig/reports"}
	for _, stage := range stages {
		for pkg, list := range deps(t, "./"+strings.TrimPrefix(stage, "krig/")+"/...") {
			for _, dep := range list {
				if slices.ContainsFunc(stages, func(s string) bool { return s != stage && within(dep, s) }) ||
					dep == "krig/internal/pipeline" || dep == "krig/internal/cli" {
					t.Errorf("%s is built from %s", pkg, dep)
				}
			}
		}
	}
}

// The agent goes to every host: it is small, and carries no SSH.
func TestAgentStaysSmall(t *testing.T) {
	allowed := []string{"krig/bench/hoststat", "krig/bench/loadgen", "krig/internal/agent", "krig/internal/result"}
	for pkg, list := range deps(t, "./cmd/krig-agent") {
		for _, dep := range list {
			switch {
			case dep == "golang.org/x/crypto/ssh", dep == "github.com/spf13/cobra", within(dep, "gonum.org"):
				t.Errorf("%s is built from %s", pkg, dep)
			case strings.HasPrefix(dep, "krig/") && !slices.Contains(allowed, dep):
				t.Errorf("%s is built from %s; of krig's own it may have %s", pkg, dep, strings.Join(allowed, ", "))
			}
		}
	}
}

// Only the main program knows the command line.
func TestOnlyMainImportsCLI(t *testing.T) {
	for pkg, list := range deps(t, "./...") {
		if slices.Contains(list, "krig/internal/cli") && pkg != "krig/cmd/krig" {
			t.Errorf("%s is built from krig/internal/cli", pkg)
		}
	}
}
