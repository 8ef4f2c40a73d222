// Package remote is the one transport to hosts: run a command, open a
// connection, and on top of these put and get files. Hosts are reached over
// SSH, this machine by [Local].
package remote

import (
	"context"
	"io"
	"net"

	"krig/internal/rundir"
)

// Conn is an open connection to one host. It may be used from several
// goroutines; its starter closes it.
type Conn struct{}

// Cmd is one command on a host.
type Cmd struct {
	Argv   []string // never passed through a shell unquoted
	Become bool     // as root, by sudo when the login is not root
	Env    []string // KEY=value, added to the host's own
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Dial connects to a host; keyDir is the run directory, below which its key file lies.
func Dial(ctx context.Context, h rundir.Host, keyDir string) (*Conn, error) { panic("being built") }

// Local is this machine.
func Local() *Conn { panic("being built") }

// Exec runs a command and waits for it. When ctx ends, the command's whole
// process group is ended on the host. A command that fails gives an *ExitError.
func (c *Conn) Exec(ctx context.Context, cmd Cmd) error { panic("being built") }

// Output runs argv and returns its standard output, at most 1 MiB of it.
func (c *Conn) Output(ctx context.Context, argv ...string) (string, error) { panic("being built") }

// Root is [Conn.Output] as root.
func (c *Conn) Root(ctx context.Context, argv ...string) (string, error) { panic("being built") }

// DialContext opens a connection from the host to addr.
func (c *Conn) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	panic("being built")
}

// Put copies a local file or directory to the host and checks it; what is
// there already with the same content is left alone. Directories on the way are made.
func (c *Conn) Put(ctx context.Context, local, path string) error { panic("being built") }

// PutBytes writes a small file on the host.
func (c *Conn) PutBytes(ctx context.Context, data []byte, path string, mode uint32) error {
	panic("being built")
}

// Get copies a file from the host and checks it.
func (c *Conn) Get(ctx context.Context, path, local string) error { panic("being built") }

// Close ends the connection and every command on it.
func (c *Conn) Close() error { panic("being built") }

// Fleet keeps one open connection a host.
type Fleet struct{}

// NewFleet dials lazily: [Fleet.Conn] connects at the first use.
func NewFleet(keyDir string) *Fleet { panic("being built") }

// Add makes hosts known.
func (f *Fleet) Add(hosts ...rundir.Host) { panic("being built") }

// Drop closes the connections of hosts that leave.
func (f *Fleet) Drop(names ...string) error { panic("being built") }

// Conn returns the connection to a host, dialling when there is none or the
// last one broke. The name "machine" is this machine.
func (f *Fleet) Conn(ctx context.Context, name string) (*Conn, error) { panic("being built") }

// Each runs do on all named hosts side by side and returns a *HostsError of
// those that failed; it waits for all.
func (f *Fleet) Each(ctx context.Context, names []string, do func(ctx context.Context, name string, c *Conn) error) error {
	panic("being built")
}

// Close closes every connection.
func (f *Fleet) Close() error { panic("being built") }
