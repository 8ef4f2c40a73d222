package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/pipeline"
)

// Exit codes. When several hold the order is 130, 3, 1.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitLeft        = 3
	exitInterrupted = 130
)

// usageError is a command line that krig does not understand.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usage(err error) error { return usageError{err} }

// hintError is an error with what to do next.
type hintError struct {
	error
	hint string
}

func (e hintError) Unwrap() error { return e.error }

func hint(err error, text string) error { return hintError{err, text} }

// leftError says that something of krig's still stands; each thing has been
// printed already, with the command that tries again.
type leftError struct{ n int }

func (e leftError) Error() string { return fmt.Sprintf("%s left standing", count(e.n, "thing")) }

// exitCode turns the error of a command into the code of the process.
func exitCode(ctx context.Context, err error) int {
	var (
		left    leftError
		remains *infra.LeftError
		bad     usageError
		refused *pipeline.Refused
		file    *experiment.Error
	)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(context.Cause(ctx), errInterrupted):
		return exitInterrupted
	case errors.As(err, &left), errors.As(err, &remains):
		return exitLeft
	case errors.As(err, &bad), errors.As(err, &refused), errors.As(err, &file):
		return exitUsage
	}
	return exitFailed
}

// printError prints what went wrong, each error on a line of its own, and what
// to do next. Errors in a file begin with its name and line, as editors expect.
func (a *app) printError(cmd *cobra.Command, err error) {
	if err == nil {
		return
	}
	for _, e := range split(err) {
		var file *experiment.Error
		if errors.As(e, &file) {
			fmt.Fprintln(a.Err, e)
			continue
		}
		fmt.Fprintf(a.Err, "krig: error: %s\n", strings.ReplaceAll(e.Error(), "\n", "\n  "))
	}
	var (
		hinted hintError
		bad    usageError
	)
	switch {
	case errors.As(err, &hinted):
		fmt.Fprintf(a.Err, "hint: %s\n", hinted.hint)
	case errors.As(err, &bad):
		fmt.Fprintf(a.Err, "hint: %s --help\n", cmd.CommandPath())
	}
}

// split takes joined errors apart, as far as nothing was said around them.
func split(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) // the outermost alone
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, split(e)...)
	}
	return out
}

// asRoot adds to an error for want of a right whose right it is.
func asRoot(err error) error {
	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return hint(err, "what the lab makes is root's: run it with sudo")
	}
	return err
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
