package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Program is the file of krig-agent on this machine for hosts of an
// architecture: beside the running krig, or in the directory that
// KRIG_AGENT_DIR names.
func Program(arch string) (string, error) {
	dir := os.Getenv("KRIG_AGENT_DIR")
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		dir = filepath.Dir(self)
	}
	file := filepath.Join(dir, "krig-agent-linux-"+arch)
	switch _, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s is missing, the program that krig runs on hosts: make it with `make build`", file)
	case err != nil:
		return "", err
	}
	return file, nil
}
