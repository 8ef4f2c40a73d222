package provision_test

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"krig/infra/lab/labtest"
	"krig/internal/experiment"
	"krig/internal/rundir"
	"krig/provision"
)

// oldJava stands before the host's own Java, calls itself Java 11 and is the host's own.
const oldJava = `cat >/usr/local/bin/java <<'END'
#!/bin/sh
[ "$1" != -version ] || { echo 'openjdk version "11.0.2" 2019-01-15' >&2; exit; }
exec /usr/bin/java "$@"
END
chmod +x /usr/local/bin/java`

// Cells with other versions of Kafka come one after the other to the same
// hosts, of which the controller has one of its own: each time what the cell
// needs and the hosts lack is brought, and nothing else.
func TestVersions(t *testing.T) {
	r := newRig(t, labtest.Spec{Brokers: 1, Controllers: 1, Workers: 1})
	r.sh(t, "b1", oldJava)
	older := r.with(func(c *experiment.Cell) { c.Kafka.Version = "3.9.1" })

	p := r.prepare(t, older, nil, 11, "3.9.1")
	standing := len(r.standing(t))
	newer := r.prepare(t, r.cell, p, 17, "4.4.0")
	if p.Hosts[0].Distribution != "3.9.1" || len(newer.Hosts[0].Install) > 0 || len(r.standing(t)) != standing {
		t.Errorf("preparing again: %+v from %+v; the ledger has %d entries, %d before", newer.Hosts[0], p.Hosts[0], len(r.standing(t)), standing)
	}
	r.once(t, newer, r.cell)
	if _, err := provision.Start(t.Context(), r.run, r.fleet, r.hosts, newer, older); err == nil || !strings.Contains(err.Error(), "b1 was prepared with Kafka 4.4.0, the cell needs 3.9.1: prepare it again") {
		t.Errorf("starting what the hosts were not prepared for: %v", err)
	}
	back := r.prepare(t, older, newer, 11, "3.9.1") // as if it were prepared for this alone
	r.once(t, back, older)

	libs, err := provision.Distribution(t.Context(), r.run, r.cell.Kafka)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("sources", func(t *testing.T) { sources(t, r, back, libs) })
	if err := provision.Restore(t.Context(), r.run, r.fleet, r.hosts); err != nil {
		t.Errorf("Restore: %v", err)
	}
	r.givenBack(t)
}

// prepare prepares all hosts and asserts the broker's Java and distribution.
func (r *rig) prepare(t *testing.T, cell *experiment.Cell, have *rundir.Prepared, java int, distribution string) *rundir.Prepared {
	t.Helper()
	p, err := provision.Prepare(t.Context(), r.run, r.fleet, r.hosts, cell, have)
	if err != nil {
		t.Fatal(err)
	}
	b := p.Hosts[0]
	if b.Facts.JavaMajor != java || !strings.HasPrefix(b.Distribution, distribution) || b.DataDir == "" {
		t.Errorf("prepared with Java %d and %s, want %d and %s: %+v", b.Facts.JavaMajor, b.Distribution, java, distribution, b)
	}
	return p
}

// once starts a cluster, writes to it, stops and wipes it.
func (r *rig) once(t *testing.T, p *rundir.Prepared, cell *experiment.Cell) {
	t.Helper()
	cl, err := provision.Start(t.Context(), r.run, r.fleet, r.hosts, p, cell)
	if err != nil {
		t.Fatal(err)
	}
	apart := len(cl.Controllers) == 1 && cl.Controllers[0].Host == "c1"
	if len(cl.Brokers) != 1 || cl.Version != cell.Kafka.Version || apart == (cl.Mode == "combined") || len(cl.Warnings) > 0 {
		t.Errorf("cluster %+v", cl)
	}
	write(t, r, cl)
	begun := time.Now()
	if err := errors.Join(provision.Stop(t.Context(), r.run, r.fleet, cl), provision.Wipe(t.Context(), r.run, r.fleet, cl)); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped and wiped after %s", time.Since(begun))
}

// sources starts what an unpacked distribution and an archive in Confluent's
// layout hold, each one process, and unpacks an archive in Apache's.
func sources(t *testing.T, r *rig, p *rundir.Prepared, libs string) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	apache, apacheSum := pack(t, libs, "kafka_2.13-4.4.0/libs", "kafka_2.13-4.4.0.jar")
	confluent, confluentSum := pack(t, libs, "confluent-8.4.0/share/java/kafka", "kafka_2.13-8.4.0-ccs.jar")
	from := func(s experiment.Source) *experiment.Cell {
		return r.with(func(c *experiment.Cell) { c.Kafka.Source, c.Kafka.Mode = s, "combined" })
	}
	got, err := provision.Distribution(t.Context(), r.run, from(experiment.Source{Archive: apache, SHA512: apacheSum}).Kafka)
	if err != nil {
		t.Fatal(err)
	}
	want, err1 := filepath.Glob(libs + "/*.jar")
	have, err2 := filepath.Glob(got + "/*.jar")
	if err := errors.Join(err1, err2); err != nil || len(have) != len(want) || len(want) < 50 {
		t.Errorf("the archive had %d jars, %d came: %v", len(want), len(have), err)
	}
	for _, s := range []struct {
		source experiment.Source
		name   string
	}{
		{experiment.Source{Directory: filepath.Dir(libs)}, "directory-"},
		{experiment.Source{Archive: confluent, SHA512: confluentSum}, "archive-"},
	} {
		cell := from(s.source)
		p = r.prepare(t, cell, p, 17, s.name)
		r.once(t, p, cell)
	}
}

// pack makes an archive of a directory's jars below dir in it; Kafka's own is
// called kafka there. It returns the archive and its SHA-512.
func pack(t *testing.T, libs, dir, kafka string) (file, sum string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "kafka.tgz")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha512.New()
	z, err := gzip.NewWriterLevel(io.MultiWriter(f, h), gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	jars, err := filepath.Glob(libs + "/*.jar")
	if err != nil {
		t.Fatal(err)
	}
	for _, jar := range jars {
		text, err := os.ReadFile(jar)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(jar)
		if strings.HasPrefix(name, "kafka_2.13-") {
			name = kafka
		}
		err = w.WriteHeader(&tar.Header{Name: dir + "/" + name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})
		if err == nil {
			_, err = w.Write(text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return file, hex.EncodeToString(h.Sum(nil))
}
