package provision_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"krig/infra"
	"krig/infra/lab/labtest"
	"krig/internal/remote"
	"krig/internal/rundir"
	"krig/provision"
)

// BenchmarkReady is the time from bare lab hosts to three ready brokers, and its
// ratio to the time that the same virtual machines take when a shell starts
// them side by side on this machine and waits for their ports. At most 1.3 is
// wanted.
func BenchmarkReady(b *testing.B) {
	labtest.Need(b)
	needs(b, "mvn", "java", "bash")
	buildAgent(b)
	b.Setenv("KRIG_SCOPE", fmt.Sprintf("BenchmarkReady-%d", time.Now().UnixNano()))
	spec := labtest.Spec{Brokers: 3, DiskSize: 2 << 30}
	cell := kafkaCell(spec)
	cell.Kafka.JVM.Heap = 1 << 30
	var ours, shells time.Duration
	for b.Loop() {
		run, err := rundir.Create(b.TempDir(), "ready", time.Now())
		if err != nil {
			b.Fatal(err)
		}
		libs, err := provision.Distribution(b.Context(), run, cell.Kafka) // fetched before anything is timed
		if err != nil {
			b.Fatal(err)
		}
		shells += shellReady(b, libs)
		hosts, err := infra.Apply(b.Context(), run, infra.Want{Cell: cell, Expiry: time.Now().Add(time.Hour)})
		if err == nil {
			fleet := remote.NewFleet(run.Dir)
			fleet.Add(hosts...)
			begun := time.Now()
			run.Listen(func(e rundir.Event) { b.Logf("%5.1f s %s %s", time.Since(begun).Seconds(), e.Host, e.Message) })
			var p *rundir.Prepared
			if p, err = provision.Prepare(b.Context(), run, fleet, hosts, cell, nil); err == nil {
				_, err = provision.Start(b.Context(), run, fleet, hosts, p, cell)
			}
			ours += time.Since(begun)
			run.Listen(nil)
			err = errors.Join(err, fleet.Close())
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(b.Context()), 2*time.Minute)
		err = errors.Join(err, infra.Destroy(ctx, run), run.Close())
		cancel()
		if err != nil {
			b.Fatal(err)
		}
	}
	n := float64(b.N)
	b.ReportMetric(ours.Seconds()/n, "s/ready")
	b.ReportMetric(shells.Seconds()/n, "s/shell")
	b.ReportMetric(ours.Seconds()/shells.Seconds(), "ratio")
}

// shellReady is how long a shell takes for the same.
func shellReady(b *testing.B, libs string) time.Duration {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "testdata/shell.sh", b.TempDir(), libs, "-Xms1g", "-Xmx1g")
	hold, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	took := time.Since(begun)
	hold.Close()
	if werr := cmd.Wait(); strings.TrimSpace(line) != "ready" {
		b.Fatalf("the shell's brokers did not come up: %q, %v, %v", line, err, werr)
	}
	return took
}
