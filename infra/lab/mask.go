package lab

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// masks are the directories of this machine that no host may see: empty ones
// lie over them. Home directories, temporary files, sockets, podman's storage,
// run directories, the project that krig is used in, and the lab's own data.
func masks(runDir, labDir string) []string {
	want := []string{"/root", "/home", "/tmp", "/run", "/var/run", "/var/tmp", "/var/lib/containers", "/run/user"}
	want = append(want, homes("/etc/passwd")...)
	if home, err := os.UserHomeDir(); err == nil {
		want = append(want, home)
	}
	want = append(want, labDir, runDir, filepath.Dir(runDir))
	if cwd, err := os.Getwd(); err == nil {
		want = append(want, cwd, project(cwd))
	}
	for _, name := range []string{"SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "TMPDIR", "GNUPGHOME", "KRIG_RUNS"} {
		if v := os.Getenv(name); filepath.IsAbs(v) {
			want = append(want, directory(v))
		}
	}
	return outermost(present(want))
}

// homes are the home directories of people, by the password file.
func homes(passwd string) []string {
	f, err := os.Open(passwd)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []string
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		fields := strings.Split(sc.Text(), ":")
		if len(fields) < 6 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		if err == nil && (uid == 0 || uid >= 1000 && uid < 60000) {
			out = append(out, fields[5])
		}
	}
	return out
}

// project is the top of the working copy that a directory is in, or the directory.
func project(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Lstat(filepath.Join(d, ".git")); err == nil {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// directory is the path itself when it is one, else the one that it lies in.
func directory(path string) string {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return filepath.Dir(path)
	}
	return path
}

// present keeps what exists and may be masked, with symbolic links resolved:
// nothing can be mounted on a link.
func present(paths []string) []string {
	var out []string
	for _, p := range paths {
		real, err := filepath.EvalSymlinks(p)
		if err != nil {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() && !system(real) {
			out = append(out, real)
		}
	}
	return out
}

// outermost leaves out what lies below another of the paths.
func outermost(paths []string) []string {
	slices.Sort(paths)
	var out []string
	for _, p := range paths {
		below := func(m string) bool { return p == m || strings.HasPrefix(p, m+"/") }
		if !slices.ContainsFunc(out, below) {
			out = append(out, p)
		}
	}
	return out
}

// system tells whether a host needs what lies in a directory: programs,
// libraries and configuration. Such a directory is never masked.
func system(path string) bool {
	for _, need := range []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys",
		"/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/local/go", "/usr/sbin", "/usr/share", "/usr/include", "/usr/libexec",
		"/opt/krig", "/var/lib/krig", "/var/lib/dpkg", "/var/cache"} {
		if path == need || path == "/" || strings.HasPrefix(need, path+"/") {
			return true
		}
	}
	return false
}

// maskFlags are podman's arguments. Without notmpcopyup podman would copy what
// is masked into memory.
func maskFlags(paths []string) []string {
	var out []string
	for _, p := range paths {
		mode := "0755"
		if p == "/tmp" || p == "/var/tmp" {
			mode = "1777"
		}
		out = append(out, "--mount", "type=tmpfs,dst="+p+",notmpcopyup,tmpfs-mode="+mode)
	}
	return out
}
