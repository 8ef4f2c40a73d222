package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// completionCmd prints what makes a shell complete krig's commands.
func (a *app) completionCmd() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		GroupID:   groupMachine,
		Short:     "Print the completion script of a shell",
		Long:      "Print the script that makes a shell complete commands, flags and the ids of runs.",
		Example:   "  source <(krig completion bash)\n  krig completion fish > ~/.config/fish/completions/krig.fish",
		Args:      args(takes(1, 1)),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			}
			return usage(fmt.Errorf("there is no completion for %s", args[0]))
		},
	}
}
