//go:build clouds

package tool

import (
	"os"
	"os/exec"
	"testing"
)

// TestToolsStand: `make tools` builds nothing anew where all stands.
func TestToolsStand(t *testing.T) {
	for _, name := range []string{"tofu", "pulumi"} {
		if all, err := builds(name); err != nil || len(all) == 0 {
			missing := t.Skipf
			if os.Getenv("CI") != "" {
				missing = t.Fatalf
			}
			missing("%s was not built: make tools (%v)", name, err)
		}
	}
	out, err := exec.Command("../tools/build", "tofu", "pulumi").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
