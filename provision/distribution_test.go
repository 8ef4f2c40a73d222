package provision

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"krig/internal/experiment"
	"krig/internal/rundir"
)

// ownCache gives a test a cache and a run of its own.
func ownCache(t *testing.T) *rundir.Run {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return testRun(t)
}

func testRun(t *testing.T) *rundir.Run {
	t.Helper()
	run, err := rundir.Create(t.TempDir(), "provision", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return run
}

// tgz packs files, and gives the archive's SHA-512.
func tgz(t *testing.T, files map[string]string) (path, sum string) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range sortedKeys(files) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "kafka.tgz")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	h := sha512.Sum512(b.Bytes())
	return path, hex.EncodeToString(h[:])
}

func unpack(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Both layouts, as archive and as directory, become the same: a directory of jars.
func TestDistributionLayouts(t *testing.T) {
	apache := map[string]string{
		"kafka_2.13-4.4.0/libs/kafka_2.13-4.4.0.jar": "k", "kafka_2.13-4.4.0/libs/log4j-core-2.25.5.jar": "l",
		"kafka_2.13-4.4.0/bin/kafka-run-class.sh": "no jar", "kafka_2.13-4.4.0/site-docs/x.jar": "not Kafka's",
	}
	confluent := map[string]string{
		"confluent-7.9.0/share/java/kafka/kafka_2.13-7.9.0-ccs.jar": "k", "confluent-7.9.0/share/java/kafka/rocksdbjni-9.jar": "r",
		"confluent-7.9.0/share/java/schema-registry/x.jar": "not Kafka's",
	}
	inner := func(files map[string]string) map[string]string {
		out := map[string]string{}
		for name, text := range files {
			_, rest, _ := strings.Cut(name, "/")
			out[rest] = text
		}
		return out
	}
	for _, tt := range []struct {
		name, version string
		files         map[string]string
		want          []string
	}{
		{"Apache", "4.4.0", apache, []string{"kafka_2.13-4.4.0.jar", "log4j-core-2.25.5.jar"}},
		{"Confluent", "3.9.0", confluent, []string{"kafka_2.13-7.9.0-ccs.jar", "rocksdbjni-9.jar"}},
	} {
		archive, sum := tgz(t, tt.files)
		server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(archive))))
		defer server.Close()
		for from, source := range map[string]experiment.Source{
			"archive":   {Archive: archive, SHA512: strings.ToUpper(sum)},
			"URL":       {Archive: server.URL + "/kafka.tgz", SHA512: sum},
			"directory": {Directory: unpack(t, inner(tt.files))},
		} {
			t.Run(tt.name+" "+from, func(t *testing.T) {
				run := ownCache(t)
				libs, err := Distribution(t.Context(), run, experiment.Kafka{Version: tt.version, Source: source})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := jarNames(libs); err != nil || !slices.Equal(got, tt.want) {
					t.Errorf("jars %q, %v; want %q", got, err, tt.want)
				}
			})
		}
	}
}

func TestDistributionRefused(t *testing.T) {
	good := map[string]string{"k/libs/kafka_2.13-4.4.0.jar": "k"}
	archive, sum := tgz(t, good)
	empty, emptySum := tgz(t, map[string]string{"k/README": "x"})
	cut := filepath.Join(t.TempDir(), "cut.tgz")
	whole, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:len(whole)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, tt := range []struct {
		name   string
		k      experiment.Kafka
		says   string
		noPath bool
	}{
		{"another sum", experiment.Kafka{Version: "4.4.0", Source: experiment.Source{Archive: archive, SHA512: strings.Repeat("0", 128)}}, "its sha512 is " + sum + ", not 0000", false},
		{"cut short", experiment.Kafka{Version: "4.4.0", Source: experiment.Source{Archive: cut, SHA512: sum}}, "unexpected EOF", false},
		{"no Kafka in it", experiment.Kafka{Version: "4.4.0", Source: experiment.Source{Archive: empty, SHA512: emptySum}}, "holds no Kafka", false},
		{"no such file", experiment.Kafka{Version: "4.4.0", Source: experiment.Source{Archive: "/no/such.tgz", SHA512: sum}}, "no such file", false},
		{"no such URL", experiment.Kafka{Version: "4.4.0", Source: experiment.Source{Archive: server.URL, SHA512: sum}}, "404", false},
		{"another version", experiment.Kafka{Version: "4.3.0", Source: experiment.Source{Archive: archive, SHA512: sum}}, "the source holds Kafka 4.4.0: set kafka.version to it", false},
		{"an empty directory", experiment.Kafka{Version: "4.4.0", Source: experiment.Source{Directory: t.TempDir()}}, "holds no Kafka: looked for", false},
		{"no Maven", experiment.Kafka{Version: "4.4.0"}, "Maven (mvn) is not installed on this machine: apt-get install maven", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := ownCache(t)
			if tt.noPath {
				t.Setenv("PATH", "")
			}
			_, err := Distribution(t.Context(), run, tt.k)
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.k.Version) {
				t.Errorf("Distribution: %v, want %q and the version", err, tt.says)
			}
			if left, _ := filepath.Glob(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "krig/kafka/.new-*")); len(left) > 0 && !tt.noPath {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestNoSuchVersion(t *testing.T) {
	if _, err := exec.LookPath("mvn"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("Maven is not installed")
	}
	_, err := Distribution(t.Context(), testRun(t), experiment.Kafka{Version: "4.99.0"})
	if err != nil && strings.Contains(err.Error(), "Could not transfer") && os.Getenv("CI") == "" {
		t.Skipf("Maven reaches no repository: %v", err)
	}
	if !errors.Is(err, ErrNoVersion) || !strings.Contains(err.Error(), "Kafka 4.99.0: maven knows no such version: there is no org.apache.kafka:kafka_2.13 of version 4.99.0") {
		t.Errorf("Distribution: %v", err)
	}
}

func TestMavenError(t *testing.T) {
	a := artifact{"org.apache.kafka", "kafka_2.13", "9.9.9"}
	for _, tt := range []struct {
		out     string
		missing bool
		says    string
	}{
		{"[ERROR] Failed to execute goal: Could not find artifact org.apache.kafka:kafka_2.13:jar:9.9.9 in central (x) -> [Help 1]", true, ""},
		{"[ERROR] org.apache.kafka:kafka_2.13:jar:9.9.9 was not found in x during a previous attempt. This failure was cached", true, ""},
		{"[ERROR] Could not find artifact org.apache.maven.plugins:maven-dependency-plugin:jar:3 in central", false, "Could not find artifact org.apache.maven.plugins"},
		{"[WARNING] x\n[ERROR] Could not transfer artifact org.apache.kafka:kafka_2.13:pom:9.9.9: Network is unreachable\n[ERROR] more", false, "Network is unreachable"},
		{"no mark at all", false, "no mark at all"},
	} {
		err := mavenError([]byte(tt.out), errors.New("exit status 1"), a)
		if errors.Is(err, ErrNoVersion) != tt.missing || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "more") {
			t.Errorf("mavenError(%q) = %v", tt.out, err)
		}
	}
}

// What was changed in the cache is fetched again, and never used.
func TestCacheIsChecked(t *testing.T) {
	cache := t.TempDir()
	fetched := 0
	fetch := func(_ context.Context, libs string) error {
		fetched++
		return writeJar(filepath.Join(libs, "kafka_2.13-4.4.0.jar"), strings.NewReader("good"))
	}
	get := func() *distribution {
		t.Helper()
		d, err := cached(t.Context(), cache, "x", fetch)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := get()
	get()
	if fetched != 1 {
		t.Fatalf("fetched %d times, want once", fetched)
	}
	jar := filepath.Join(d.libs, "kafka_2.13-4.4.0.jar")
	for name, spoil := range map[string]func() error{
		"changed": func() error { return os.WriteFile(jar, []byte("evil"), 0o644) },
		"removed": func() error { return os.Remove(jar) },
		"added":   func() error { return os.WriteFile(filepath.Join(d.libs, "evil.jar"), nil, 0o644) },
		"torn":    func() error { return os.Truncate(filepath.Join(filepath.Dir(d.libs), manifestFile), 10) },
	} {
		before := fetched
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		get()
		if text, err := os.ReadFile(jar); fetched != before+1 || string(text) != "good" {
			t.Errorf("%s: fetched %d times, jar %q, %v", name, fetched-before, text, err)
		}
	}
}

// Several at once fetch once, and a waiting one ends with its context.
func TestCacheTakesTurns(t *testing.T) {
	cache := t.TempDir()
	var fetched atomic.Int32
	slow := make(chan struct{})
	fetch := func(_ context.Context, libs string) error {
		fetched.Add(1)
		<-slow
		return writeJar(filepath.Join(libs, "kafka_2.13-4.4.0.jar"), strings.NewReader("good"))
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if _, err := cached(t.Context(), cache, "x", fetch); err != nil {
				t.Error(err)
			}
		})
	}
	for fetched.Load() == 0 {
		if err := pause(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := cached(ctx, cache, "x", fetch); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another krig holds") {
		t.Errorf("a waiting one: %v", err)
	}
	close(slow)
	wait.Wait()
	if n := fetched.Load(); n != 1 {
		t.Errorf("fetched %d times, want once", n)
	}
}

func TestApacheVersion(t *testing.T) {
	for jar, want := range map[string]string{"4.4.0": "4.4.0", "7.9.1-ccs": "3.9.1", "7.0.0-ce": "3.0.0", "8.0.0-ccs": "4.0.0", "6.2.1-ccs": "2.8.1", "5.5.0-ccs": "5.5.0-ccs", "4.4.0-rc1": "4.4.0-rc1"} {
		if got := apacheVersion(jar); got != want {
			t.Errorf("apacheVersion(%s) = %s, want %s", jar, got, want)
		}
	}
}

func FuzzUnpackJars(f *testing.F) {
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) { _ = unpackJars(bytes.NewReader(data), t.TempDir()) })
}
