package infra_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// containers are the names of the run's containers, by podman.
func containers(t *testing.T, short string) []string {
	t.Helper()
	out, err := exec.Command("podman", "ps", "--all", "--format", "{{.Names}}").Output()
	if err != nil {
		t.Fatal(err)
	}
	return containing(strings.Fields(string(out)), short)
}

func containing(all []string, part string) []string {
	var out []string
	for _, s := range all {
		if strings.Contains(s, part) {
			out = append(out, s)
		}
	}
	return out
}

// traces are what this machine shows of a run, seen without any of krig's own
// code: podman's lists, the kernel's tables, processes and files.
func traces(t *testing.T, short, labDir string) []string {
	t.Helper()
	out := containers(t, short)
	for _, argv := range [][]string{
		{"podman", "network", "ls", "--format", "{{.Name}}"},
		{"losetup", "--noheadings", "--output", "BACK-FILE", "--list"},
		{"cat", "/proc/self/mounts"},
	} {
		text, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, containing(strings.Split(string(text), "\n"), short)...)
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		data, err := os.ReadFile(p)
		if err == nil && strings.Contains(string(data), "krig-"+short) {
			out = append(out, "process "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	for _, dir := range []string{labDir, "/etc/containers/networks"} {
		files, err := filepath.Glob(filepath.Join(dir, "*"+short+"*"))
		hidden, err2 := filepath.Glob(filepath.Join(dir, ".*"+short+"*"))
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		out = append(append(out, files...), hidden...)
	}
	return out
}

// strayRules are the kernel's throttle rules of loop devices that no device has a
// file for: nobody's, so they must not be there.
func strayRules(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/sys/fs/cgroup/blkio/blkio.throttle.*_device")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			minor, ok := strings.CutPrefix(strings.Fields(line)[0], "7:")
			if _, err := os.Stat("/sys/block/loop" + minor + "/loop"); ok && err != nil {
				out = append(out, filepath.Base(f)+" "+strings.TrimSpace(line))
			}
		}
	}
	return out
}
