package provision

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"krig/internal/experiment"
	"krig/internal/kafka"
)

// What krig writes into a node's log directory is what the version's own
// StorageTool writes there, but for ids.
func TestFormat(t *testing.T) {
	for _, p := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatal(err)
			}
			t.Skipf("%s is not installed", p)
		}
	}
	d, err := resolve(t.Context(), testRun(t), experiment.Kafka{Version: "4.4.0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, roles := range []string{"broker", "controller", "broker,controller"} {
		t.Run(roles, func(t *testing.T) { sameFormat(t, d, roles) })
	}
}

func sameFormat(t *testing.T, d *distribution, roles string) {
	ours, err := d.formatted(t.Context(), roles)
	if err != nil {
		t.Fatal(err)
	}
	java, ok := localJava(t.Context(), 17)
	if !ok {
		t.Skip("this machine's Java is older than 17")
	}
	// Kafka takes a comma in a path for its end, and would write below the current directory.
	dir := filepath.Join(t.TempDir(), "with,comma")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := d.formatHere(t.Context(), java, roles, dir)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := readFiles(made)
	if err != nil {
		t.Fatal(err)
	}
	if len(ours) != len(tools) || len(tools) == 0 {
		t.Errorf("krig writes %d files, the tool %d", len(ours), len(tools))
	}
	for name := range tools { // snapshots differ in times and check sums
		if len(ours[name]) != len(tools[name]) {
			t.Errorf("%s: %d bytes, the tool's has %d", name, len(ours[name]), len(tools[name]))
		}
	}
	want, got := kafka.ReadProperties(string(tools[metaFile])), kafka.ReadProperties(string(forNode(ours[metaFile], "our-cluster", 7)))
	if got["cluster.id"] != "our-cluster" || got["node.id"] != "7" || len(got["directory.id"]) != 22 || got["directory.id"] == want["directory.id"] {
		t.Errorf("%s: %v", metaFile, got)
	}
	for k, v := range want {
		if k != "cluster.id" && k != "node.id" && k != "directory.id" && got[k] != v || len(got) != len(want) {
			t.Errorf("%s: %v, the tool's is %v", metaFile, got, want)
		}
	}
}
