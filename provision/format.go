package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"krig/internal/kafka"
	"krig/internal/rundir"
)

// formatDir keeps, beside a distribution's jars, what its own StorageTool made
// of an empty log directory, for each value of process.roles.
const formatDir = "format"

const formatLimit = time.Minute

// formatted is what StorageTool writes into the log directory of a node with
// these roles, by path. Nothing of it depends on the node or its cluster but the
// ids in meta.properties, so that the tool, a virtual machine of its own, runs
// once for each distribution instead of once for each node. Where this machine
// has no Java for it there is none, and nodes are formatted on their hosts.
func (d *distribution) formatted(ctx context.Context, roles string) (map[string][]byte, error) {
	home := filepath.Dir(d.libs)
	kept := filepath.Join(home, formatDir, roles)
	files, err := readFiles(kept)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return files, err
	}
	java, ok := localJava(ctx, javaFor(d.version))
	if !ok {
		return nil, nil
	}
	tmp, err := os.MkdirTemp(home, ".format-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	made, err := d.formatHere(ctx, java, roles, tmp)
	if err != nil {
		return nil, fmt.Errorf("asking Kafka %s how it formats a log directory: %w", d.version, err)
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return nil, err
	}
	if err := os.Rename(made, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err // one that another krig has made meanwhile is as good
	}
	return readFiles(kept)
}

// formatHere formats a log directory in dir for a node with these roles. Kafka is
// given its name alone, since it takes a comma in a path for the end of it.
func (d *distribution) formatHere(ctx context.Context, java, roles, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, formatLimit)
	defer cancel()
	const config, log = "server.properties", "log"
	n := &node{id: 1, host: rundir.Host{Internal: "127.0.0.1"}, dir: log, broker: strings.Contains(roles, "broker"), controller: strings.Contains(roles, "controller")}
	quorum := "2@127.0.0.1:9093"
	if n.controller {
		quorum = "1@127.0.0.1:9093"
	}
	if err := os.WriteFile(filepath.Join(dir, config), kafka.WriteProperties(quorumProperties(n, quorum)), 0o644); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, java, "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", d.libs+"/*",
		"kafka.tools.StorageTool", "format", "-t", newClusterID(), "-c", config)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return filepath.Join(dir, log), nil
}

// readFiles reads all files below a directory.
func readFiles(dir string) (map[string][]byte, error) {
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err == nil {
			out[filepath.ToSlash(rel)], err = os.ReadFile(file)
		}
		return err
	})
	return out, err
}

const metaFile = "meta.properties"

// forNode gives meta.properties the ids of a node and its cluster, and a new
// one to its directory.
func forNode(meta []byte, cluster string, id int32) []byte {
	p := kafka.ReadProperties(string(meta))
	p["cluster.id"], p["node.id"] = cluster, strconv.Itoa(int(id))
	if _, has := p["directory.id"]; has {
		p["directory.id"] = newClusterID()
	}
	return kafka.WriteProperties(p)
}

// layFormat writes what the log directory of a node is made of into a directory
// on this machine. false says that the node is to be formatted by the tool:
// settings of the unstable kind could change what it writes.
func (s *site) layFormat(ctx context.Context, n *node, cluster, dir string) (bool, error) {
	for k := range s.cell.Kafka.Broker {
		if strings.HasPrefix(k, "unstable.") {
			return false, nil
		}
	}
	files, err := s.dist.formatted(ctx, n.roles())
	if err != nil || files == nil {
		return false, err
	}
	for name, text := range files {
		if name == metaFile {
			text = forNode(text, cluster, n.id)
		}
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), text); err != nil {
			return false, err
		}
	}
	return true, nil
}

// writeFile writes a file, and makes the directories on its way.
func writeFile(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
