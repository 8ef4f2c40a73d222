package main

import (
	"context"
	"encoding/json"
	"fmt"

	"krig/bench/loadgen"
	"krig/internal/agent"
)

// load is the verb of the native driver: a worker's share of one load.
func load(ctx context.Context, s *agent.Session) error {
	var spec loadgen.Spec
	if err := json.Unmarshal(s.Args, &spec); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	return loadgen.Run(ctx, &spec, s)
}
