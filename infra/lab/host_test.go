package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"krig/internal/rundir"
)

func TestRunArgs(t *testing.T) {
	l := &Lab{run: &rundir.Run{Dir: t.TempDir(), Short: "abc123"}, label: someLabel(),
		ground: ground{Dir: "/data/krig-abc123", Lxcfs: "/data/krig-abc123/lxcfs", Hidden: []string{"/root", "/tmp"}}}
	s := Spec{Name: "b1", Memory: 2 << 30, CPUs: 1.5, Disk: Disk{Size: 1, Write: 5}}
	args, err := l.runArgs(s, "10.1.2.11", "/dev/loop3", "/data/krig-abc123/b1")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join(args, " ")
	for _, want := range []string{
		"run --detach --name krig-abc123-b1 --hostname b1 --network krig-abc123 --ip 10.1.2.11 --mac-address 02:6b:0a:01:02:0b ",
		" --memory 2147483648b ", " --cpus 1.5 ", " --device /dev/loop3 ", " --label krig-run=abc123 ", " --label krig-hold=run ",
		" --label krig-expiry=2030-01-02T03:04:05Z ", " --mount type=tmpfs,dst=/root,notmpcopyup,tmpfs-mode=0755 ",
		" --mount type=tmpfs,dst=/tmp,notmpcopyup,tmpfs-mode=1777 ", " --volume /data/krig-abc123/lxcfs/proc/stat:/proc/stat:ro ",
		" --volume /data/krig-abc123/b1/ssh:/etc/ssh:ro --rootfs /:O /bin/sh -c ",
	} {
		if !strings.Contains(line, want) {
			t.Errorf("no %q in %s", want, line)
		}
	}
	if strings.Contains(line, "--privileged") || strings.Contains(line, "diskstats") {
		t.Errorf("too much in %s", line)
	}
	args, err = l.runArgs(Spec{Name: "w1"}, "10.1.2.151", "", "/data/krig-abc123/w1")
	if err != nil || slices.Contains(args, "--memory") || slices.Contains(args, "--cpus") || slices.Contains(args, "--device") {
		t.Errorf("without limits: %v (%v)", args, err)
	}
	if _, err := l.runArgs(s, "10.1.2.11", "", "/data,x/krig-abc123/b1"); err == nil || !strings.Contains(err.Error(), "KRIG_LAB_DIR") {
		t.Errorf("a comma in the data folder's name: %v", err)
	}
}

func TestThrottleFlags(t *testing.T) {
	got := strings.Join(throttleFlags("/dev/loop3", Disk{Write: 1, Read: 2, IOPS: 3}), " ")
	if want := "--device-write-bps /dev/loop3:1 --device-read-bps /dev/loop3:2 --device-write-iops /dev/loop3:3 --device-read-iops /dev/loop3:3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := throttleFlags("/dev/loop3", Disk{}); len(got) > 0 {
		t.Errorf("without a rate: %v", got)
	}
}

func TestHasRule(t *testing.T) {
	const text = "7:3 31457280\n7:12 5\n"
	for number, want := range map[string]bool{"7:3": true, "7:12": true, "7:1": false, "7:31": false, "": false} {
		if got := hasRule(text, number); got != want {
			t.Errorf("%q: %v", number, got)
		}
	}
}

func TestParseCgroup(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"v1", "4:memory:/libpod_parent/libpod-1\n1:cpu:/other\n", "/libpod_parent/libpod-1"},
		{"hybrid", "4:cpu,memory:/libpod_parent/libpod-1\n0::/\n", "/libpod_parent/libpod-1"},
		{"v2", "0::/machine.slice/libpod-1.scope/container\n", "/machine.slice/libpod-1.scope/container"},
	} {
		if got, err := parseCgroup(c.text); err != nil || got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.name, got, err, c.want)
		}
	}
	if got, err := parseCgroup("1:cpu:/x\nnonsense"); err == nil {
		t.Errorf("without memory: %q", got)
	}
}

func TestFindController(t *testing.T) {
	const table = `30 24 0:27 / /sys/fs/cgroup/cpu rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct
31 24 0:28 /part /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio
32 24 0:29 / /sys/fs/cgroup/my\040own rw - cgroup cgroup rw,memory
33 24 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,memory_localevents
nonsense
`
	for controller, want := range map[string]string{
		"cpu": "/sys/fs/cgroup/cpu", "cpuacct": "/sys/fs/cgroup/cpu", "memory": "/sys/fs/cgroup/my own", "blkio": "", "pids": "",
	} {
		if got := findController(table, controller); got != want {
			t.Errorf("%s at %q, want %q", controller, got, want)
		}
	}
}

func FuzzTables(f *testing.F) {
	f.Add("30 24 0:27 / /x rw - cgroup cgroup rw,cpu")
	f.Add(`4:memory:/a\040b`)
	f.Fuzz(func(t *testing.T, text string) {
		findController(text, "cpu")
		_, _ = parseCgroup(text)
		_, _ = parseRoutes(text)
		hasRule(text, "7:3")
		if got := unescapeMount(text); len(got) > len(text) {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

func TestMasks(t *testing.T) {
	home, runs := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TMPDIR", "")
	got := masks(filepath.Join(runs, "run"), filepath.Join(home, "lab"))
	for _, must := range []string{"/root", "/tmp", "/run", "/var/tmp"} {
		if real, err := filepath.EvalSymlinks(must); err == nil && !slices.Contains(got, real) {
			t.Errorf("%s is visible: %v", must, got)
		}
	}
	for _, p := range got {
		if system(p) || p == "/" {
			t.Errorf("%s is masked: a host needs it", p)
		}
		for _, q := range got {
			if p != q && strings.HasPrefix(p, q+"/") {
				t.Errorf("%s is masked below %s", p, q)
			}
		}
	}
}

func TestSystem(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/usr": true, "/usr/bin": true, "/etc": true, "/var": true, "/var/lib": true, "/opt": true, "/opt/krig": true,
		"/home": false, "/srv/runs": false, "/var/runs": false, "/opt/project": false, "/usr/src/project": false,
	} {
		if got := system(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestHomes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "passwd")
	text := "root:x:0:0::/root:/bin/sh\nwww:x:33:33::/var/www:/bin/sh\nann:x:1000:1000::/people/ann:/bin/sh\nnobody:x:65534:1::/nonexistent:/bin/sh\nbroken\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, want := homes(file), []string{"/root", "/people/ann"}; !slices.Equal(got, want) {
		t.Errorf("homes are %v, want %v", got, want)
	}
}

func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "infra", "client_key")
	public, err := clientKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := clientKey(path); err != nil || again != public {
		t.Errorf("a second call gives %q (%v), not %q", again, err, public)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v (%v)", info.Mode(), err)
	}
	host, err := writeSSH(filepath.Join(filepath.Dir(path), "ssh"), public, "b1")
	if err != nil || host == public {
		t.Errorf("the host's key is %q (%v)", host, err)
	}
	for _, k := range []string{public, host} {
		if key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(k)); err != nil || key.Type() != "ssh-ed25519" {
			t.Errorf("%q: %v", k, err)
		}
	}
}
