package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"krig/internal/remote"
)

// formatDir keeps, beside a distribution's jars, what its own StorageTool made
// of an empty broker's log directory.
const formatDir = "broker-format"

const formatLimit = time.Minute

// brokerFormat is what StorageTool writes into the log directory of a broker,
// by file name. Nothing of it depends on the broker or its cluster but the ids
// in meta.properties, so that the tool, a virtual machine of its own, runs once
// for each distribution instead of once for each broker. Where this machine has
// no Java for it there is none, and brokers are formatted on their hosts.
func (d *distribution) brokerFormat(ctx context.Context) (map[string][]byte, error) {
	home := filepath.Dir(d.libs)
	kept := filepath.Join(home, formatDir)
	files, err := readFiles(kept)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return files, err
	}
	v, _ := parseVersion(d.version)
	java, ok := localJava(ctx, v.java())
	if !ok {
		return nil, nil
	}
	tmp, err := os.MkdirTemp(home, ".format-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, formatDir)
	if err := d.formatHere(ctx, java, tmp, made); err != nil {
		return nil, fmt.Errorf("asking Kafka %s how it formats a broker's log directory: %w", d.version, err)
	}
	if err := os.Rename(made, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err // one that another krig has made meanwhile is as good
	}
	return readFiles(kept)
}

// formatHere formats dir as a broker's log directory.
func (d *distribution) formatHere(ctx context.Context, java, tmp, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, formatLimit)
	defer cancel()
	config := filepath.Join(tmp, "server.properties")
	text := writeProperties(map[string]string{
		"node.id": "1", "process.roles": "broker", "controller.quorum.voters": "2@127.0.0.1:9093", "controller.listener.names": "CONTROLLER",
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT", "listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": dir,
	})
	if err := os.WriteFile(config, text, 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", d.libs+"/*",
		"kafka.tools.StorageTool", "format", "-t", newClusterID(), "-c", config)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// readFiles reads the files of a directory that has no directories in it.
func readFiles(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const metaFile = "meta.properties"

// forNode gives meta.properties the ids of a node and its cluster, and a new
// one to its directory.
func forNode(meta []byte, cluster string, id int32) []byte {
	p := readProperties(string(meta))
	p["cluster.id"], p["node.id"] = cluster, strconv.Itoa(int(id))
	if _, has := p["directory.id"]; has {
		p["directory.id"] = newClusterID()
	}
	return writeProperties(p)
}

// putFormat lays ready on its host what the log directory of a broker is made
// of, and says where. "" says that the node is to be formatted by the tool:
// controllers, and what settings could change.
func (s *site) putFormat(ctx context.Context, c *remote.Conn, n *node, cluster string) (string, error) {
	for k := range s.cell.Kafka.Broker {
		if strings.HasPrefix(k, "unstable.") {
			return "", nil
		}
	}
	if n.controller || s.format == nil {
		return "", nil
	}
	dir := path.Join(path.Dir(s.l.config(n.name())), "format")
	for name, text := range s.format {
		if name == metaFile {
			text = forNode(text, cluster, n.id)
		}
		if err := c.PutBytes(ctx, text, path.Join(dir, name), 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}
