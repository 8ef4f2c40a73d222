package provision

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"krig/internal/rundir"
)

// fetchMaven has Maven copy Kafka, its tools and all they need into libs.
// Kafka 4 comes without a binding from slf4j to its log4j: that is added, or
// brokers would log nothing.
func fetchMaven(ctx context.Context, version, libs string) error {
	err := mavenCopy(ctx, libs,
		artifact{"org.apache.kafka", "kafka_2.13", version}, artifact{"org.apache.kafka", "kafka-tools", version})
	if err != nil {
		return err
	}
	names, err := jarNames(libs)
	if err != nil {
		return err
	}
	if core := logCore(names); core != "" && !hasJar(names, "log4j-slf4j-impl-") {
		return mavenCopy(ctx, libs, artifact{"org.apache.logging.log4j", "log4j-slf4j-impl", core})
	}
	return nil
}

// artifact is a Maven artifact.
type artifact struct{ group, name, version string }

// project is a POM with nothing but dependencies.
type project struct {
	XMLName      xml.Name     `xml:"http://maven.apache.org/POM/4.0.0 project"`
	Model        string       `xml:"modelVersion"`
	Group        string       `xml:"groupId"`
	Artifact     string       `xml:"artifactId"`
	Version      string       `xml:"version"`
	Packaging    string       `xml:"packaging"`
	Dependencies []dependency `xml:"dependencies>dependency"`
}

type dependency struct {
	Group    string `xml:"groupId"`
	Artifact string `xml:"artifactId"`
	Version  string `xml:"version"`
}

// mavenCopy has Maven put artifacts and what they need at run time into libs.
func mavenCopy(ctx context.Context, libs string, want ...artifact) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("Maven (mvn) is not installed on this machine: apt-get install maven, or name an archive or a directory under kafka.source")
	}
	pom := project{Model: "4.0.0", Group: "krig", Artifact: "distribution", Version: "1", Packaging: "pom"}
	for _, a := range want {
		pom.Dependencies = append(pom.Dependencies, dependency{a.group, a.name, a.version})
	}
	text, err := xml.MarshalIndent(pom, "", "  ")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(libs), "pom-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), text, 0o644); err != nil {
		return err
	}
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "-B", "-q", "-Dmaven.repo.local="+filepath.Join(filepath.Dir(cache), "maven"),
		"dependency:copy-dependencies", "-DoutputDirectory="+libs, "-DincludeScope=runtime")
	cmd.Dir = dir
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return mavenError(out, err, want[0])
	}
	return nil
}

// mavenError tells what Maven's output says.
func mavenError(out []byte, err error, asked artifact) error {
	text := string(out)
	if mentionsMissing(text, asked) {
		return fmt.Errorf("%w: there is no %s:%s of version %s", ErrNoVersion, asked.group, asked.name, asked.version)
	}
	return fmt.Errorf("mvn: %w: %s", err, firstError(text))
}

// mentionsMissing recognises Maven's two wordings, that of a first try and
// that of one whose failure it remembers.
func mentionsMissing(text string, a artifact) bool {
	at := strings.Index(text, fmt.Sprintf("%s:%s:", a.group, a.name))
	return at >= 0 && (strings.Contains(text, "Could not find artifact") || strings.Contains(text, "was not found in"))
}

// firstError is the first line that Maven marks as an error.
func firstError(text string) string {
	for line := range strings.Lines(text) {
		if _, msg, ok := strings.Cut(line, "[ERROR] "); ok {
			return strings.TrimSpace(msg)
		}
	}
	return strings.TrimSpace(text)
}

// logCore is the version of log4j 2 among jars; "" when there is none.
func logCore(names []string) string {
	for _, n := range names {
		if v, ok := strings.CutPrefix(n, "log4j-core-"); ok {
			return strings.TrimSuffix(v, ".jar")
		}
	}
	return ""
}

func hasJar(names []string, prefix string) bool {
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			return true
		}
	}
	return false
}

// fetchArchive unpacks the jars of a .tgz, a path or a URL, whose SHA-512 must
// be sum.
func fetchArchive(ctx context.Context, from, sum, libs string) error {
	in, err := openSource(ctx, from)
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha512.New()
	all := io.TeeReader(in, h)
	if err := unpackJars(all, libs); err != nil {
		return fmt.Errorf("archive %s: %w", from, err)
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return fmt.Errorf("archive %s: %w", from, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != sum {
		return fmt.Errorf("archive %s: its sha512 is %s, not %s as the experiment says", from, got, sum)
	}
	return nil
}

func openSource(ctx context.Context, from string) (io.ReadCloser, error) {
	if !strings.Contains(from, "://") {
		return os.Open(from)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("fetching %s: %s", from, resp.Status)
	}
	return resp.Body, nil
}

// largestJar bounds one unpacked file, so that a bad archive cannot fill the disk.
const largestJar = 512 << 20

// unpackJars writes the jars that lie in an archive's jar directory.
func unpackJars(in io.Reader, libs string) error {
	zipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	files := tar.NewReader(zipped)
	for {
		h, err := files.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !inJarDir(h.Name) {
			continue
		}
		if h.Size > largestJar {
			return fmt.Errorf("%s is too large for a jar: %d bytes", h.Name, h.Size)
		}
		if err := writeJar(filepath.Join(libs, path.Base(h.Name)), files); err != nil {
			return err
		}
	}
}

// inJarDir tells whether an archive's file is a jar of Kafka's: below libs in
// Apache's layout, below share/java/kafka in Confluent's.
func inJarDir(name string) bool {
	dir, file := path.Split(path.Clean("/" + name))
	dir = path.Clean(dir)
	return strings.HasSuffix(file, ".jar") && (path.Base(dir) == "libs" || strings.HasSuffix(dir, "/share/java/kafka"))
}

func writeJar(to string, in io.Reader) error {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// jarDir is where an unpacked distribution keeps its jars.
func jarDir(dir string) (string, error) {
	for _, d := range []string{filepath.Join(dir, "libs"), filepath.Join(dir, "share", "java", "kafka"), dir} {
		names, err := jarNames(d)
		if err == nil && hasJar(names, "kafka_2.") {
			return d, nil
		}
	}
	return "", fmt.Errorf("%s holds no Kafka: looked for kafka_2.13-VERSION.jar in it, in libs and in share/java/kafka", dir)
}

// directorySum names the present content of an unpacked distribution.
func directorySum(dir string) (string, error) {
	jars, err := jarDir(dir)
	if err != nil {
		return "", err
	}
	names, err := jarNames(jars)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, n := range names {
		sum, err := rundir.FileSum(filepath.Join(jars, n))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s  %s\n", sum, n)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

func copyJars(dir, libs string) error {
	jars, err := jarDir(dir)
	if err != nil {
		return err
	}
	names, err := jarNames(jars)
	if err != nil {
		return err
	}
	for _, n := range names {
		text, err := os.ReadFile(filepath.Join(jars, n))
		if err != nil {
			return err
		}
		if err := writeJar(filepath.Join(libs, n), bytes.NewReader(text)); err != nil {
			return err
		}
	}
	return nil
}
