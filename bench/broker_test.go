package bench

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"krig/internal/rundir"
)

// realBroker is one Kafka process of version 4.4.0, controller and broker, on
// this machine. All tests of the package share it.
type realBroker struct {
	java, jars string
	addr       string
	dir        string // in memory: nobody else's pages to wait for
	logDir     string
	process    *exec.Cmd
}

// theBroker starts the broker at its first call; TestMain stops it.
var theBroker = sync.OnceValues(startBroker)

var begun *realBroker

// realPlace is a place with the real broker; it skips where Kafka or Java is missing.
func realPlace(tb testing.TB, workers int) (*place, *realBroker) {
	tb.Helper()
	b, err := theBroker()
	if errors.As(err, new(lackError)) {
		lacking(tb, err.Error())
	}
	if err != nil {
		tb.Fatal(err)
	}
	p := placeWith(tb, workers, []rundir.Node{{ID: 1, Host: "b1", Listener: b.addr, LogDirs: []string{b.logDir}}})
	for i := range p.session.rig.Prepared.Hosts {
		h := &p.session.rig.Prepared.Hosts[i]
		h.Java, h.Kafka = b.java, b.jars
	}
	return p, b
}

// lackError says which real part is not there.
type lackError string

func (e lackError) Error() string { return string(e) }

// lacking skips for want of a real part, but fails in CI.
func lacking(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatal(what)
	}
	tb.Skip(what)
}

func startBroker() (*realBroker, error) {
	b := &realBroker{}
	var err error
	if b.java, err = exec.LookPath("java"); err != nil {
		return nil, lackError("java is not installed")
	}
	if b.jars, err = kafkaJars(); err != nil {
		return nil, err
	}
	if b.dir, err = os.MkdirTemp("/dev/shm", "krig-bench"); err != nil {
		return nil, err
	}
	b.logDir = filepath.Join(b.dir, "data")
	if err = b.start(); err == nil {
		err = b.answers(2 * time.Minute)
	}
	if err != nil {
		b.stop()
		return nil, err
	}
	begun = b
	return b, nil
}

// kafkaJars is the distribution of 4.4.0 in krig's cache.
func kafkaJars() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	for _, below := range []string{"*4.4.0*", "*4.4.0*/*"} {
		if found, _ := filepath.Glob(filepath.Join(cache, "krig", "kafka", below, "kafka-tools-4.4.0.jar")); len(found) > 0 {
			return filepath.Dir(found[0]), nil
		}
	}
	return "", lackError("Kafka 4.4.0 is not in krig's cache: make setup")
}

func (b *realBroker) start() error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	b.addr = ports[0]
	config := filepath.Join(b.dir, "server.properties")
	text := fmt.Sprintf(`process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%s
listeners=PLAINTEXT://%s,CONTROLLER://%s
controller.listener.names=CONTROLLER
log.dirs=%s
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.segment.delete.delay.ms=1000
`, ports[1], ports[0], ports[1], b.logDir)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	classpath := filepath.Join(b.jars, "*")
	format := exec.Command(b.java, "-cp", classpath, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", config)
	if out, err := format.CombinedOutput(); err != nil {
		return fmt.Errorf("formatting: %w: %s", err, out)
	}
	log, err := os.Create(filepath.Join(b.dir, "broker.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	b.process = exec.Command(b.java, "-Xmx1g", "-cp", classpath, "kafka.Kafka", config)
	b.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	b.process.Stdout, b.process.Stderr = log, log
	return b.process.Start()
}

func (b *realBroker) answers(limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		conn, err := net.Dial("tcp", b.addr)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(b.dir, "broker.log"))
			return fmt.Errorf("the broker does not answer: %w: %s", err, log[max(0, len(log)-2000):])
		}
	}
}

// stop ends the process and removes its files.
func (b *realBroker) stop() {
	if b.process != nil && b.process.Process != nil {
		_ = b.process.Process.Kill()
		_ = b.process.Wait()
	}
	os.RemoveAll(b.dir)
}

func (b *realBroker) admin(tb testing.TB) *kadm.Client {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(client.Close)
	return kadm.NewClient(client)
}

// freePorts are addresses that nobody listens at.
func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		out = append(out, l.Addr().String())
	}
	return out, nil
}
