package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"krig/internal/experiment"
	"krig/internal/remote"
)

// keysFile lists, beside a distribution's jars, the broker settings that it knows.
const keysFile = "broker-keys.txt"

const keysLimit = 2 * time.Minute

// errNoJava says that no Java here can ask a distribution for its settings.
var errNoJava = errors.New("no Java here runs it")

// checkKnown refuses broker settings that this version of Kafka does not know.
// The version itself is asked, once for each distribution: here, where there is
// a Java that runs it, else on the host of c with its program java. Without
// either the answer is errNoJava.
func (d *distribution) checkKnown(ctx context.Context, asked map[string]string, c *remote.Conn, java, libs string) error {
	if len(asked) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, keysLimit)
	defer cancel()
	known, err := d.knownKeys(ctx, c, java, libs)
	if err != nil {
		return fmt.Errorf("asking Kafka %s for the broker settings that it knows: %w", d.version, err)
	}
	if bad := unknown(asked, known, d.version); len(bad) > 0 {
		return errors.New(strings.Join(bad, "\n"))
	}
	return nil
}

// unknown says of each asked setting that is not known what may have been meant.
func unknown(asked map[string]string, known []string, version string) []string {
	var bad []string
	for _, k := range sortedKeys(asked) {
		if slices.Contains(known, k) || strings.HasPrefix(k, "unstable.") {
			continue
		}
		line := fmt.Sprintf("kafka.broker.%s: Kafka %s has no such setting", k, version)
		if near := experiment.Nearest(k, known); near != "" {
			line += ", the nearest is " + near
		}
		bad = append(bad, line)
	}
	return bad
}

func (d *distribution) knownKeys(ctx context.Context, c *remote.Conn, java, libs string) ([]string, error) {
	file := filepath.Join(filepath.Dir(d.libs), keysFile)
	text, err := os.ReadFile(file)
	if err == nil {
		return strings.Fields(string(text)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	page, err := d.keysPage(ctx, c, java, libs)
	if err != nil {
		return nil, err
	}
	keys := readKeys(page)
	if len(keys) < 50 {
		return nil, fmt.Errorf("its list has %d settings only: %.200q", len(keys), page)
	}
	tmp := fmt.Sprintf("%s.%d", file, os.Getpid())
	if err := os.WriteFile(tmp, []byte(strings.Join(keys, "\n")+"\n"), 0o644); err != nil {
		return nil, err
	}
	return keys, os.Rename(tmp, file)
}

// keysPage has the distribution print the page that documents its settings.
func (d *distribution) keysPage(ctx context.Context, c *remote.Conn, java, libs string) ([]byte, error) {
	if local, ok := localJava(ctx, javaFor(d.version)); ok {
		cmd := exec.CommandContext(ctx, local, keysArgs(d.libs)...)
		cmd.WaitDelay = 5 * time.Second
		return cmd.Output()
	}
	if c == nil {
		return nil, errNoJava
	}
	var out bytes.Buffer
	err := c.Exec(ctx, remote.Cmd{Argv: append([]string{java}, keysArgs(libs)...), Stdout: &out})
	return out.Bytes(), err
}

func keysArgs(libs string) []string {
	return []string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", libs + "/*", "kafka.server.KafkaConfig"}
}

// localJava is this machine's java, where it is new enough.
func localJava(ctx context.Context, need int) (string, bool) {
	path, err := exec.LookPath("java")
	if err != nil {
		return "", false
	}
	said, err := exec.CommandContext(ctx, path, "-version").CombinedOutput()
	if err != nil {
		return "", false
	}
	_, major := javaVersion(string(said))
	return path, major >= need
}

var keyAnchor = regexp.MustCompile(`id="brokerconfigs_([A-Za-z0-9._-]+)"`)

// readKeys takes the settings from Kafka's own page about them.
func readKeys(page []byte) []string {
	var out []string
	for _, m := range keyAnchor.FindAllSubmatch(page, -1) {
		out = append(out, string(m[1]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
