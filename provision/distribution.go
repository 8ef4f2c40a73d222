package provision

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"krig/internal/experiment"
	"krig/internal/rundir"
)

// distribution is one Kafka on this machine, in krig's cache:
// kafka/<id>/libs/*.jar, and beside libs the manifest of what they must be.
type distribution struct {
	id      string // names it in the cache and on hosts
	version string // Kafka's, as its own jars say
	libs    string // directory with all jars
}

const manifestFile = "manifest.sha256"

// fetchLimit bounds one whole fetch of a distribution.
const fetchLimit = 15 * time.Minute

// ErrNoVersion says that Maven knows no Kafka of the version asked for.
var ErrNoVersion = errors.New("maven knows no such version")

// Distribution resolves the cell's Kafka on this machine: a directory in
// krig's cache with all jars, checked. It is what Prepare puts on hosts. A
// version that Maven does not know gives ErrNoVersion.
func Distribution(ctx context.Context, run *rundir.Run, k experiment.Kafka) (string, error) {
	d, err := resolve(ctx, run, k)
	if err != nil {
		return "", err
	}
	return d.libs, nil
}

// Foresee resolves the Kafka of every cell on this machine and refuses broker
// settings that it does not know: what can be told before any host is made.
// Where this machine has no Java that runs a version, its settings wait for a host's.
func Foresee(ctx context.Context, run *rundir.Run, cells []*experiment.Cell) error {
	var problems []error
	seen := map[string]bool{}
	for _, c := range cells {
		key := fmt.Sprint(c.Kafka.Version, c.Kafka.Source, c.Kafka.Broker)
		if seen[key] {
			continue
		}
		seen[key] = true
		d, err := resolve(ctx, run, c.Kafka)
		if err == nil {
			err = d.checkKnown(ctx, c.Kafka.Broker, nil, "", "")
		}
		if err != nil && !errors.Is(err, errNoJava) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// resolve finds or fetches the distribution that an experiment asks for.
func resolve(ctx context.Context, run *rundir.Run, k experiment.Kafka) (*distribution, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	id, fetch, err := sourceOf(run, k)
	if err != nil {
		return nil, fmt.Errorf("Kafka %s: %w", k.Version, err)
	}
	d, err := cached(ctx, cache, id, fetch)
	if err != nil {
		return nil, fmt.Errorf("Kafka %s: %w", k.Version, err)
	}
	if d.version != k.Version {
		return nil, fmt.Errorf("Kafka %s: the source holds Kafka %s: set kafka.version to it", k.Version, d.version)
	}
	return d, nil
}

// A fetcher puts the jars of a distribution into libs, an empty directory.
type fetcher func(ctx context.Context, libs string) error

// sourceOf names a source in the cache and says how to fetch it.
func sourceOf(run *rundir.Run, k experiment.Kafka) (id string, fetch fetcher, err error) {
	say := func(format string, args ...any) {
		run.Report(rundir.Event{Stage: "prepare", Message: fmt.Sprintf(format, args...)})
	}
	switch {
	case k.Source.Directory != "":
		sum, err := directorySum(k.Source.Directory)
		return "directory-" + sum, func(ctx context.Context, libs string) error {
			return copyJars(k.Source.Directory, libs)
		}, err
	case k.Source.Archive != "":
		sum := strings.ToLower(k.Source.SHA512)
		if len(sum) != 128 {
			return "", nil, fmt.Errorf("archive %s: its sha512 must be 128 hexadecimal digits, not %d", k.Source.Archive, len(sum))
		}
		return "archive-" + sum[:16], func(ctx context.Context, libs string) error {
			say("unpacking %s", k.Source.Archive)
			return fetchArchive(ctx, k.Source.Archive, sum, libs)
		}, nil
	}
	return k.Version, func(ctx context.Context, libs string) error {
		say("fetching Kafka %s with Maven", k.Version)
		return fetchMaven(ctx, k.Version, libs)
	}, nil
}

// cached returns the distribution of an id, fetched first when the cache has
// none that is whole. Several krig at once take turns.
func cached(ctx context.Context, cache, id string, fetch fetcher) (*distribution, error) {
	unlock, err := lockFile(ctx, filepath.Join(cache, "."+id+".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	home := filepath.Join(cache, id)
	if verify(home) == nil {
		return describe(id, home)
	}
	tmp, err := os.MkdirTemp(cache, ".new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	libs := filepath.Join(tmp, "libs")
	if err := os.Mkdir(libs, 0o755); err != nil {
		return nil, err
	}
	if err := fetch(ctx, libs); err != nil {
		return nil, err
	}
	if err := seal(tmp); err != nil {
		return nil, err
	}
	if _, err := describe(id, tmp); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(home); err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, home); err != nil {
		return nil, err
	}
	return describe(id, home)
}

// describe reads a distribution's version from its own jars.
func describe(id, home string) (*distribution, error) {
	libs := filepath.Join(home, "libs")
	names, err := jarNames(libs)
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if m := kafkaJar.FindStringSubmatch(n); m != nil {
			return &distribution{id: id, version: apacheVersion(m[1]), libs: libs}, nil
		}
	}
	return nil, fmt.Errorf("%s holds no Kafka: no kafka_2.13-VERSION.jar among %d jars", libs, len(names))
}

var kafkaJar = regexp.MustCompile(`^kafka_2\.1\d-(\d+\.\d+\.\d+(?:-\w+)?)\.jar$`)

// apacheVersion is the Kafka that a jar's version stands for: Confluent's
// 7.9.0-ccs is built from Kafka 3.9.0, 6.2.1 from 2.8.1, 8.0.0 from 4.0.0.
func apacheVersion(jar string) string {
	v, confluent := strings.CutSuffix(jar, "-ccs")
	if !confluent {
		v, confluent = strings.CutSuffix(jar, "-ce")
	}
	if !confluent {
		return jar
	}
	parsed, ok := experiment.ParseVersion(v)
	switch {
	case !ok || parsed.Major < 6:
		return jar // older than any Kafka that krig runs
	case parsed.Major == 6:
		return fmt.Sprintf("2.%d.%d", parsed.Minor+6, parsed.Patch)
	}
	return fmt.Sprintf("%d.%d.%d", parsed.Major-4, parsed.Minor, parsed.Patch)
}

// cacheDir is where this user's distributions live.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding krig's cache: %w", err)
	}
	dir := filepath.Join(base, "krig", "kafka")
	return dir, os.MkdirAll(dir, 0o755)
}

// lockFile takes a lock that other processes see, waiting for its holder until ctx ends.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), f.Close())
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return nil, errors.Join(fmt.Errorf("another krig holds %s: %w", path, err), f.Close())
		}
	}
}

// seal writes the manifest of a fetched distribution.
func seal(home string) error {
	names, err := jarNames(filepath.Join(home, "libs"))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, n := range names {
		sum, err := rundir.FileSum(filepath.Join(home, "libs", n))
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, n)
	}
	return os.WriteFile(filepath.Join(home, manifestFile), out.Bytes(), 0o644)
}

// verify tells whether a cached distribution is what was once fetched: the
// manifest's jars, unchanged, and no others.
func verify(home string) error {
	f, err := os.Open(filepath.Join(home, manifestFile))
	if err != nil {
		return err
	}
	defer f.Close()
	want := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || name != filepath.Base(name) {
			return fmt.Errorf("%s: bad line %q", f.Name(), lines.Text())
		}
		want[name] = sum
	}
	names, err := jarNames(filepath.Join(home, "libs"))
	if err := errors.Join(err, lines.Err()); err != nil {
		return err
	}
	if len(names) != len(want) || len(names) == 0 {
		return fmt.Errorf("%s holds %d jars, its manifest %d", home, len(names), len(want))
	}
	for _, n := range names {
		sum, err := rundir.FileSum(filepath.Join(home, "libs", n))
		if err != nil {
			return err
		}
		if sum != want[n] {
			return fmt.Errorf("%s was changed since it was fetched", n)
		}
	}
	return nil
}

// jarNames lists the jars of a directory, sorted.
func jarNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jar") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
