//go:build clouds

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"krig/infra/tool"
)

// A module of a user's own, whose hosts are the lab's, goes the whole way.
func TestModule(t *testing.T) {
	needLab(t)
	if _, err := tool.Terraform(t.Context(), os.Getenv(tool.Env)); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	agents := buildAgents(t)
	testscript.Run(t, params("testdata/module", func(env *testscript.Env) error {
		mine := scope()
		env.Setenv("KRIG_SCOPE", mine)
		env.Setenv("KRIG_AGENT_DIR", agents)
		env.Setenv("HOME", os.Getenv("HOME")) // krig's cache, Maven's and Go's
		env.Setenv("TF_CLI_CONFIG_FILE", "/dev/null")
		env.Defer(func() { nothingStands(t, mine) })
		return user(env, mine)
	}))
}

// user gives a script a user's directory: an experiment, a module whose hosts are
// lab hosts of a run of their own (mine ends with its id), and the key that logs in to them.
func user(env *testscript.Env, mine string) error {
	env.Setenv("MY_TOKEN", "hush-7e1f")
	env.Setenv("LAB", filepath.Join(env.WorkDir, "lab", "own-20261201T000000Z-"+mine[len(mine)-6:]))
	if err := os.CopyFS(env.WorkDir, os.DirFS("testdata/module/user")); err != nil {
		return err
	}
	key := exec.Command("sh", "newkey.sh")
	key.Dir, key.Env = env.WorkDir, append(os.Environ(), "LAB="+env.Getenv("LAB"))
	return key.Run()
}
