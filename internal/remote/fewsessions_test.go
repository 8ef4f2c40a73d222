package remote

import (
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A server with one session a connection does what others do, files and
// commands beside one that stays open among it, over further connections that
// end with the first.
func TestOneSessionAConnection(t *testing.T) {
	t.Parallel()
	s := startSSHD(t, "MaxSessions 1")
	c, err := Dial(limited(t, 30*time.Second), s.host, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	long := make(chan error, 1)
	pids := make(pidWriter, 1)
	go func() {
		long <- c.Exec(t.Context(), Cmd{Argv: []string{"sh", "-c", "echo $$; exec sleep 300"}, Stdout: pids})
	}()
	pid := <-pids
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got, err := c.Output(limited(t, 60*time.Second), "echo", "x"); err != nil || got != "x\n" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Go(func() {
		if err := c.PutBytes(limited(t, 60*time.Second), []byte("text"), filepath.Join(s.dir, "put"), 0o600); err != nil {
			t.Error(err)
		}
	})
	wg.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-long; err == nil {
		t.Error("a command outlived its connection")
	}
	eventually(t, "the long command is gone", func() bool { return !alive(pid) })
	eventually(t, "no connection is left", func() bool { return connections(t, s) == 0 })
}
