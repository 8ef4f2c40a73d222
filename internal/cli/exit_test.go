package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"krig/infra"
	"krig/internal/experiment"
	"krig/internal/pipeline"
)

func TestExitCodes(t *testing.T) {
	bad := &experiment.Error{File: "x.yaml", Line: 3, Column: 5, Key: "repeat", Reason: "is 0"}
	left := fmt.Errorf("teardown: %w", &infra.LeftError{})
	failed := errors.New("without one valid repeat: one")
	cut, cancel := context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	for _, c := range []struct {
		ctx  context.Context
		err  error
		want int
	}{
		{t.Context(), nil, 0},
		{cut, nil, 0}, // interrupted too late to matter
		{t.Context(), failed, 1},
		{t.Context(), usage(errors.New("unknown flag")), 2},
		{t.Context(), hint(usage(errors.New("no such run")), "krig list"), 2},
		{t.Context(), errors.Join(bad, bad), 2},
		{t.Context(), &pipeline.Refused{Reasons: []error{errors.New("podman is missing")}}, 2},
		{t.Context(), left, 3},
		{t.Context(), leftError{2}, 3},
		// when several hold: 130, 3, 1
		{t.Context(), errors.Join(failed, left), 3},
		{t.Context(), errors.Join(leftError{1}, failed), 3},
		{cut, errors.Join(failed, left), 130},
		{cut, errInterrupted, 130},
	} {
		if got := exitCode(c.ctx, c.err); got != c.want {
			t.Errorf("%v (interrupted: %v): %d, want %d", c.err, c.ctx.Err() != nil, got, c.want)
		}
	}
}

func TestErrorsArePrintedOnce(t *testing.T) {
	bad := func(line int) error {
		return &experiment.Error{File: "x.yaml", Line: line, Column: 5, Key: "repeat", Reason: "is 0", Expected: "1 or more"}
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nothing": {nil, ""},
		"plain":   {fmt.Errorf("installing java: %w", errors.New("b1: exit 100")), "krig: error: installing java: b1: exit 100\n"},
		"a file's, as editors expect": {
			&pipeline.Refused{Reasons: []error{errors.Join(bad(3), bad(7))}},
			"x.yaml:3:5: repeat: is 0; expected 1 or more\nx.yaml:7:5: repeat: is 0; expected 1 or more\n",
		},
		"usage":       {usage(errors.New("unknown flag: --x")), "krig: error: unknown flag: --x\nhint: krig plan --help\n"},
		"with a hint": {hint(usage(errors.New("no run nope")), "krig list"), "krig: error: no run nope\nhint: krig list\n"},
		"several lines": {
			fmt.Errorf("broker 1 died:\nlast line\nof its log"),
			"krig: error: broker 1 died:\n  last line\n  of its log\n",
		},
		"causes of one thing": {
			fmt.Errorf("%w: %w", errors.New("interrupted"), errors.New("tofu ended")), "krig: error: interrupted: tofu ended\n",
		},
		"joined": {errors.Join(errors.New("one"), errors.New("two")), "krig: error: one\nkrig: error: two\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			a := &app{IO: IO{Err: &out}}
			root := &cobra.Command{Use: "krig"}
			plan := &cobra.Command{Use: "plan FILE"}
			root.AddCommand(plan)
			a.printError(plan, c.err)
			if out.String() != c.want {
				t.Errorf("printed\n%swant\n%s", out.String(), c.want)
			}
		})
	}
}
