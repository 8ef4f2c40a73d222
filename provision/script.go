package provision

import (
	"bytes"
	"context"
	"strings"

	"krig/internal/remote"
)

// runScript runs a shell script on a host as root and returns what it prints.
// The script comes on standard input, so that errors show its arguments and not
// its text; braces have the shell read all of it before anything in it can read
// from there.
func runScript(ctx context.Context, c *remote.Conn, script string, args ...string) (string, error) {
	var out bytes.Buffer
	err := c.Exec(ctx, remote.Cmd{
		Argv:   append([]string{"sh", "-s", "--"}, args...),
		Become: true,
		Stdin:  strings.NewReader("{\n" + script + "\n} </dev/null\n"),
		Stdout: &out,
	})
	return out.String(), err
}
